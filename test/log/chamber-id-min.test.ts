// CHAMBER_ID_MIN: new chambers of a restored log get ids above those that already have roots in its registry.
import { expect, it } from 'vitest';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { audit } from '../audit/forge.ts';
import { fsckLog } from '../durability/log-book.ts';
import { deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';

const open = (path: string, chamberIdMin?: number) =>
  new TestService({ store: openSqliteStore(path, chamberIdMin === undefined ? {} : { chamberIdMin }) });

it('a new chamber gets the next id, or CHAMBER_ID_MIN if that is higher', async () => {
  const path = temporaryDatabase();
  const before = open(path);
  const ids = [await openChamber(before, [await before.agent()])];
  await before.close();
  for (const chamberIdMin of [1_000, 1_000, undefined, 5]) {
    const service = open(path, chamberIdMin);
    const members = [await service.agent(), await service.agent()];
    ids.push(await openChamber(service, members), await openChamber(service, members));
    const [, chamberId = 0] = ids;
    for (const id of [2, 999]) expect((await service.request('GET', `/chambers/${id}`)).status).toBe(404);
    expect((await service.request('GET', `/chambers/${chamberId}`)).status).toBe(200);
    await service.close();
  }
  expect(ids).toEqual([1, 1_000, 1_001, 1_002, 1_003, 1_004, 1_005, 1_006, 1_007]);
  expect(await fsckLog(path, (fault) => expect.fail(JSON.stringify(fault)))).toMatchObject({ faults: 0, chambers: 9 });
});

it('chambers created concurrently get consecutive ids and can be played', async () => {
  const service = open(':memory:', 500);
  const [ann, bob] = [await service.agent(), await service.agent()];
  const create = async () => {
    const body = { name: 'Test', ...deadlinesFrom(service.clock.read()) };
    return (await service.must('POST', '/chambers', { by: ann, body })).chamberId as number;
  };
  const ids = await Promise.all(Array.from({ length: 20 }, create));
  expect(ids.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => 500 + index));
  await service.must('POST', '/chambers/507/join', { by: bob });
  await enterPhase(service, 507, 'PROPOSAL');
  await service.must('POST', '/chambers/507/pass', { by: bob });
  service.clock.advance(5 * HOUR);
  const { broken } = await audit(`${(await service.lines(507)).join('\n')}\n`);
  expect(broken).toEqual([]);
  expect(
    (await service.must('GET', '/chambers?limit=2', {})).map((each: { chamberId: number }) => each.chamberId),
  ).toEqual([519, 518]);
});

// Three nodes on one PostgreSQL with readers on all of them: a text that one node withholds disappears from the responses of
// every node.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { TestClock } from '../kit/clock.ts';
import { openStore, temporaryPostgres } from '../kit/postgres.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';
import { everyResponse, SECRET } from '../withholding/every-response.ts';

it('a withheld text is gone from every response within seconds, and a retry gets its first response at every node', async () => {
  const [url, clock] = [await temporaryPostgres(), new TestClock()];
  const file = join(temporaryFolder(), 'withhold');
  writeFileSync(file, '');
  const open = async (settings = {}) => new TestService({ store: await openStore(url), clock, settings });
  const nodes = [await open({ WITHHOLD_FILE: file }), await open(), await open()] as const;
  const [first] = nodes;
  first.composed.withholder.start();
  const ann = await first.agent({ label: SECRET });
  const id = await openChamber(first, [ann]);
  await enterPhase(first, id, 'PROPOSAL');
  const idea = { name: SECRET, ticker: 'RAIN', description: SECRET };
  await first.must('POST', `/chambers/${id}/propose`, { by: ann, body: idea });
  await enterPhase(first, id, 'DEBATE');
  const said = first.prepare('POST', `/chambers/${id}/debate`, { by: ann, body: { comment: SECRET } });
  const answer = await first.send(said);
  const ids = { id: [`${id}`], did: [ann.did], ticker: ['RAIN'] };
  for (const node of nodes) expect(await everyResponse(node, ids)).toContain('/transcript');
  const { root } = await first.must('GET', `/chambers/${id}/merkle-preview`);

  writeFileSync(file, `${id}:3 secret\n${id}:4 secret\n${ann.did}:1 secret\n`);
  first.composed.withholder.reload();
  await eventually(() => expect(first.store.withholding.through).toBe(4), 10_000);
  expect(await everyResponse(first, ids)).toBe('');
  for (const node of nodes) {
    await eventually(() => expect(node.store.withholding.through).toBe(4), 5_000);
    expect(await everyResponse(node, ids)).toBe('');
    expect(await node.send(said)).toMatchObject({ status: 200, body: answer.body });
    expect(await node.must('GET', `/chambers/${id}/merkle-preview`)).toMatchObject({ root });
  }
  expect(
    (await first.events(id)).filter(({ withheld }) => withheld !== undefined).map(({ eventId }) => eventId),
  ).toEqual([2, 3, 4]);
}, 60_000);

it('two nodes that withhold the same list create one stub for each event', async () => {
  const [url, clock] = [await temporaryPostgres(), new TestClock()];
  const file = join(temporaryFolder(), 'withhold');
  writeFileSync(file, '');
  const open = async () => new TestService({ store: await openStore(url), clock, settings: { WITHHOLD_FILE: file } });
  const nodes = [await open(), await open()] as const;
  const ann = await nodes[0].agent();
  const ids: number[] = [];
  for (let chamber = 0; chamber < 5; chamber++) ids.push(await openChamber(nodes[0], [ann], { name: SECRET }));
  writeFileSync(file, ids.map((id) => `${id}:1 abuse\n`).join(''));
  for (const node of nodes) node.composed.withholder.start();
  for (const node of nodes) {
    await eventually(
      () =>
        expect(node.composed.withholder.state()).toMatchObject({ withheld: 5, failedEntries: 0, problem: undefined }),
      10_000,
    );
  }
  const { count } = await nodes[0].store.withholding.read(0, 100);
  expect(count).toBe(5);
}, 60_000);

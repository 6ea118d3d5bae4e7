// Withholding in PostgreSQL: other nodes, the trigger, and databases of the previous schema.
import { expect, it } from 'vitest';
import { copyLog } from '../../../src/log/open-log.ts';
import { faultsOf } from '../../durability/log-book.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';
import { debated, describeWithholding, renewed, restatedFor, SECRET, stubOf, stubsOf } from '../withheld.ts';
import { remains } from './withheld-bytes.ts';

const placeAt = (place: string) => ({ place, open: () => openStore(place) });

describeWithholding(async () => ({
  ...placeAt(await temporaryPostgres()),
  copy: async (from) => {
    const to = await temporaryPostgres();
    await execute(from, 'DELETE FROM leases');
    await copyLog(from, to);
    return placeAt(to);
  },
  tamper: (url, sql) => execute(url, sql),
  remains,
}));

it('a node drops its states at once when another withholds, and its next move restores no text', async () => {
  const url = await temporaryPostgres();
  const chamber = await debated(await openStore(url));
  const { service, chamberId, members, events } = chamber;
  const other = new TestService({ store: await openStore(url), clock: service.clock });
  expect(JSON.stringify(await other.must('GET', `/chambers/${chamberId}`))).toContain(SECRET);
  await service.store.withholding.withhold(await stubsOf(service.store, events));
  const body = { ideaId: 'idea-1', comment: 'hm', stance: 'for' };
  await other.must('POST', `/chambers/${chamberId}/debate`, { by: members[0], body });
  expect(other.store.withholding.through).toBe(4);
  expect(JSON.stringify(await other.must('GET', `/chambers/${chamberId}`))).not.toContain(SECRET);
  expect(await remains(url)).toBe(false);
  expect(await faultsOf(url)).toEqual([]);
});

it('a node without moves notices a withholding within seconds', async () => {
  const url = await temporaryPostgres();
  const { service, events } = await debated(await openStore(url));
  const other = await openStore(url);
  const heard: unknown[] = [];
  other.withholding.onWithheld((streams) => heard.push(streams));
  await service.store.withholding.withhold(await stubsOf(service.store, events));
  await eventually(() => expect(heard).toEqual([new Set([events[0]?.[0], events[3]?.[0]])]));
  await other.close();
});

it.each([
  ['a line', "UPDATE events SET line = '{}' WHERE stream = '1' AND event_id = 1"],
  ['a stub', "UPDATE events SET line = line WHERE stream = '1' AND event_id = 3"],
  ['the leaf', "UPDATE events SET nodes = NULL WHERE stream = '1' AND event_id = 3"],
  ['everything', 'DELETE FROM events'],
])('another program cannot change %s', async (_what, sql) => {
  const url = await temporaryPostgres();
  const { service, chamberId, events } = await debated(await openStore(url));
  await service.store.withholding.withhold([await stubOf(service.store, chamberId, events[1]?.[1] ?? 0)]);
  await expect(execute(url, sql)).rejects.toThrow('events is append-only');
});

it('two nodes that start together on a renewed log replace each stub once', async () => {
  const url = await temporaryPostgres();
  const { service, events } = await debated(await openStore(url));
  await service.store.withholding.withhold(await stubsOf(service.store, events));
  await service.close();
  await renewed(url);
  const stores = await Promise.all([openStore(url), openStore(url)]);
  const { logId } = stores[0].log;
  // With different keys, the stubs of the two nodes would differ.
  const counts = await Promise.all(
    stores.map(({ withholding }, index) => withholding.restate(restatedFor(logId, Buffer.alloc(32, index + 1)))),
  );
  expect(counts.reduce((sum, count) => sum + count)).toBe(4);
  const [one, other] = await Promise.all(stores.map(({ withholding }) => withholding.read(0, 1_000)));
  expect(one).toEqual(other);
  expect(new Set(one?.ndjson.toString().match(/"log":"[^"]*"/g))).toEqual(new Set([`"log":"${logId}"`]));
  await Promise.all(stores.map((store) => store.close()));
  expect(await faultsOf(url)).toEqual([]);
});

it('a stub without a number or with a leaf other than its line’s is rejected', async () => {
  const url = await temporaryPostgres();
  const { service, chamberId } = await debated(await openStore(url));
  const stub = Buffer.from((await stubOf(service.store, chamberId, 1)).line).toString('hex');
  const numbered = "INSERT INTO withheld VALUES (1, '1', 1, NULL)";
  const update = (eventId: number) =>
    `UPDATE events SET line = '\\x${stub}' WHERE stream = '1' AND event_id = ${eventId}`;
  await expect(execute(url, update(1))).rejects.toThrow('events is append-only');
  await expect(execute(url, `${numbered}; ${update(2)}`)).rejects.toThrow('events is append-only');
});

it('the first start migrates a database of schema 6', async () => {
  const url = await temporaryPostgres();
  const { service, events } = await debated(await openStore(url));
  await service.close();
  await execute(
    url,
    `DROP TRIGGER events_refuse_update ON events; DROP TRIGGER events_refuse_change ON events; DROP FUNCTION require_stub();
    CREATE TRIGGER events_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
    DROP TABLE withheld; DROP TABLE callbacks; DROP TABLE callback_signatures;
    UPDATE meta SET value = '6' WHERE name = 'schema_version'`,
  );
  const [store, other] = await Promise.all([openStore(url), openStore(url)]);
  expect(await store.withholding.withhold(await stubsOf(store, events))).toHaveLength(4);
  await other.close();
  await store.close();
  expect(await remains(url)).toBe(false);
  expect(await faultsOf(url)).toEqual([]);
});

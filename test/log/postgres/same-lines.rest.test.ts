// The same commands and withholdings at the same times leave the same lines and derived rows in both stores, and a rebuild yields
// the same rows.
import { expect, it } from 'vitest';
import { keysInMemory } from '../../../src/keys/key-file.ts';
import { TABLES } from '../../../src/log/sql/tables.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import type { StreamId } from '../../../src/log/stream-id.ts';
import { accountRecordSchemas } from '../../../src/moves/records.ts';
import { moveOfEvent } from '../../../src/moves/registry.ts';
import { faultsOf, rebuildLog } from '../../durability/log-book.ts';
import { START } from '../../kit/clock.ts';
import { Commands, linesOf } from '../../kit/commands.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { Random } from '../../kit/random.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';
import { foreignConnection } from '../entries.ts';
import { stubOf } from '../withheld.ts';

const { COMMANDS = '1000' } = process.env;

it(`${COMMANDS} random commands get the same responses and leave the same lines and rows in both stores (COMMANDS)`, {
  timeout: 120_000 + 150 * Number(COMMANDS),
}, async () => {
  // Creations record the service's keys.
  const serviceKeys = keysInMemory('5a'.repeat(16), START);
  const keys = () => serviceKeys;
  const [path, url] = [temporaryDatabase(), await temporaryPostgres()];
  const services = [
    new TestService({ store: openSqliteStore(path), keys }),
    new TestService({ store: await openStore(url), keys }),
  ] as const;
  const commands = new Commands(11, { hasRounds: true });
  const random = new Random(12);
  for (let step = 0; step < Number(COMMANDS); step++) {
    const [one, other] = await commands.step(services);
    expect(other).toBe(one);
    if (random.below(STEPS_PER_STUB) === 0) await withholdOne(services, random.pick([...commands.streams]), random);
  }
  expect(services[0].store.withholding.through).toBeGreaterThan(0);
  const [one, other] = await Promise.all(services.map((service) => linesOf(service, commands.streams)));
  expect(other).toBe(one);
  const types = new Set(
    [...(one ?? '').matchAll(/"type":"([a-z_.]+)"(?:,"withheld":[^\n]+)?\}\n/g)].map(([, type]) => type),
  );
  expect([...types].sort()).toEqual(TYPES.toSorted());
  for (const service of services) await service.close();
  const rows = () => derivedRows((sql) => Promise.resolve(foreignConnection(path).prepare<[], Row>(sql).all()));
  const postgresRows = () => derivedRows((sql) => execute(url, sql));
  const live = await rows();
  for (const [table, { length }] of Object.entries(live)) expect([table, length]).not.toEqual([table, 0]);
  expect(await postgresRows()).toEqual(live);
  for (const place of [path, url]) {
    expect(await faultsOf(place)).toEqual([]);
    await rebuildLog(place);
  }
  expect(await rows()).toEqual(live);
  expect(await postgresRows()).toEqual(live);
});

const STEPS_PER_STUB = 10;

/** Withholds a random line of the stream, if it has texts. */
async function withholdOne(services: readonly TestService[], stream: StreamId, random: Random): Promise<void> {
  const [first] = services;
  const head = (await first?.log.lastEventId(stream)) ?? 0;
  if (first === undefined || head === 0) return;
  const stub = await stubOf(first.store, stream, 1 + random.below(head)).catch(() => undefined);
  if (stub === undefined) return;
  const written = await Promise.all(services.map(({ store }) => store.withholding.withhold([stub])));
  expect(written[1]).toEqual(written[0]);
}

type Row = Readonly<Record<string, unknown>>;

/** The rows by table, in the order of their keys, with the same JavaScript values for both stores. */
async function derivedRows(query: (sql: string) => Promise<readonly Row[]>) {
  const tables = Object.values(TABLES).map(async ({ name, key, columns }) => {
    const rows = await query(`SELECT * FROM ${name} ORDER BY ${key}`);
    return [name, rows.map((row) => columns.map((column) => toValue(column.type, row[column.name])))] as const;
  });
  return Object.fromEntries(await Promise.all(tables));
}

/** SQLite has no booleans, and the PostgreSQL client returns a bigint as text. */
function toValue(type: string, stored: unknown): unknown {
  if (stored === null) return null;
  if (type === 'boolean') return Boolean(stored);
  return type === 'integer' ? Number(stored) : stored;
}

const TYPES = [...Object.keys(accountRecordSchemas), ...Object.keys(moveOfEvent), 'chamber.committed'];

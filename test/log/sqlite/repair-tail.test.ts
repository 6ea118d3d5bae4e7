// repairTail removes only the rows that another program appended to the log, and saves them.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { repairTail } from '../../../src/log/sqlite/repair.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { faultsOf } from '../../durability/log-book.ts';
import { debating, type Running, run } from '../../kit/service.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { foreignConnection, tamper } from '../entries.ts';

const COLUMNS = 'position, chamber_id, account, event_id, line, signature, nodes';

let path: string;
let chamberId: number;
let running: Running;
let before: unknown;

/** An account (position 1), a chamber created and joined (2 and 3) and three comments (4 to 6). */
beforeEach(async () => {
  path = temporaryDatabase();
  running = await run({ DATABASE_PATH: path });
  const { id, debate } = await debating(running);
  for (const comment of ['one', 'two', 'three']) await debate(comment);
  chamberId = id;
  before = stored();
});

const stored = () => foreignConnection(path).prepare('SELECT * FROM events ORDER BY position').all();
const append = (values: string) => tamper(path, `INSERT INTO events (${COLUMNS}) VALUES ${values}`);

it.each([
  ['a gap in a chamber', (id: number) => [`(7, ${id}, NULL, 9, '{}', NULL, NULL)`]],
  ['a stream that starts with 2', () => [`(7, NULL, 'did:key:a', 2, '{}', NULL, NULL)`]],
  ['a line that does not parse', (id: number) => [`(7, ${id}, NULL, 6, 'hello', NULL, NULL)`]],
  ['a copy of the last event', () => ['SELECT']],
  [
    'several rows',
    (id: number) => [
      `(7, ${id}, NULL, 6, '{}', NULL, x'00'), (8, 99, NULL, 1, '{"a":1}', x'0102', NULL)`,
      `(9, ${id}, NULL, 7, CAST(x'ff' AS TEXT), NULL, NULL)`,
    ],
  ],
])('repairTail removes and saves the rows that another program appended: %s', async (_title, rowsFor) => {
  await running.stop();
  const statements = rowsFor(chamberId);
  for (const values of statements) {
    if (values !== 'SELECT') append(values);
    else
      tamper(
        path,
        `INSERT INTO events (${COLUMNS}) SELECT 7, chamber_id, account, event_id + 1, line, NULL, nodes FROM events
        WHERE position = 6`,
      );
  }
  const foreign = (stored() as readonly { line: string; event_id: number }[]).slice(6);
  const { removed, removedTo } = await repairTail(path);
  expect({ removed, removedTo }).toEqual({ removed: foreign.length, removedTo: `${path}.removed-7.ndjson` });
  const saved = readFileSync(removedTo ?? '', 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(saved.map(({ position, event_id }) => ({ position, event_id }))).toEqual(
    foreign.map(({ event_id }, index) => ({ position: 7 + index, event_id })),
  );
  expect(saved[0].text).toBe(foreign[0]?.line);
  expect(Buffer.from(saved[0].line.slice(2), 'hex').toString()).toBe(foreign[0]?.line);
  expect(statSync(removedTo ?? '').mode & 0o777).toBe(0o600);
  expect(stored()).toEqual(before);
  expect(await faultsOf(path)).toEqual([]);
  expect(() => foreignConnection(path).exec('DELETE FROM events WHERE position = 6')).toThrow('append-only');
  await openSqliteStore(path).close();
});

it('repairTail changes nothing in a sound log', async () => {
  await running.stop();
  expect(await repairTail(path)).toEqual({ removed: 0, removedTo: null });
  expect(stored()).toEqual(before);
});

it.each([
  ['an event of another stream that is sound', () => `UPDATE events SET line = 'x' WHERE position = 1`],
  ['events that continue one another', () => `UPDATE events SET line = 'x' WHERE position = 4`],
])('repairTail changes nothing if damage is followed by %s', async (_title, sql) => {
  await running.stop();
  tamper(path, sql());
  const damaged = stored();
  await expect(repairTail(path)).rejects.toThrow("may be the service's own: restore a backup instead");
  expect(stored()).toEqual(damaged);
  expect(readdirSync(dirname(path)).filter((name) => name.includes('removed'))).toEqual([]);
});

it('repairTail fails while a service runs', async () => {
  await expect(repairTail(path)).rejects.toThrow('another process is using it');
});

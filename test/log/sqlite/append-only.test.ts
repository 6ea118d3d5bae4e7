// Triggers make `events` append-only for every program that opens the file, and REPLACE does not bypass them.
import { expect, it } from 'vitest';
import type { StreamId } from '../../../src/log/stream-id.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { entry, foreignConnection, openLog } from '../entries.ts';

async function writtenLog() {
  const path = temporaryDatabase();
  const store = openLog(path);
  await store.log.append({ entries: [entry(1, 1), entry(1, 2), entry('did:key:a', 1), entry(2, 1)] });
  return { store, path };
}

const COLUMNS = 'position, chamber_id, account, event_id, line, signature, nodes';
const FORGED = "'{}'";

it.each([
  ['UPDATE', `UPDATE events SET line = ${FORGED}`],
  ['UPDATE OR REPLACE', 'UPDATE OR REPLACE events SET event_id = 1 WHERE event_id = 2'],
  ['UPDATE of a position', 'UPDATE events SET position = 9 WHERE position = 1'],
  ['DELETE', 'DELETE FROM events WHERE position = 4'],
  ['DELETE of everything', 'DELETE FROM events'],
  ['REPLACE at a position', `REPLACE INTO events (${COLUMNS}) VALUES (1, 1, NULL, 1, ${FORGED}, NULL, NULL)`],
  [
    'an upsert',
    `INSERT INTO events (${COLUMNS}) VALUES (1, 1, NULL, 1, ${FORGED}, NULL, NULL) ON CONFLICT DO UPDATE SET line = excluded.line`,
  ],
  ['a gap in the positions', `INSERT INTO events (${COLUMNS}) VALUES (6, 1, NULL, 3, ${FORGED}, NULL, NULL)`],
  ['a row without a position', `INSERT INTO events (${COLUMNS}) VALUES (NULL, 1, NULL, 3, ${FORGED}, NULL, NULL)`],
  ['an existing event', `INSERT OR REPLACE INTO events (${COLUMNS}) VALUES (5, 1, NULL, 1, ${FORGED}, NULL, NULL)`],
  ['a gap in a chamber', `INSERT INTO events (${COLUMNS}) VALUES (5, 1, NULL, 4, ${FORGED}, NULL, NULL)`],
  ['a gap in an account', `INSERT INTO events (${COLUMNS}) VALUES (5, NULL, 'did:key:a', 3, ${FORGED}, NULL, NULL)`],
  ['a stream that starts with 2', `INSERT INTO events (${COLUMNS}) VALUES (5, 3, NULL, 2, ${FORGED}, NULL, NULL)`],
  [
    'an existing signature',
    `INSERT OR REPLACE INTO events (${COLUMNS}) VALUES (5, 1, NULL, 3, ${FORGED}, (SELECT signature FROM events WHERE position = 1), NULL)`,
  ],
  ['an event without a stream', `INSERT INTO events (${COLUMNS}) VALUES (5, NULL, NULL, 1, ${FORGED}, NULL, NULL)`],
  ['an event in two streams', `INSERT INTO events (${COLUMNS}) VALUES (5, 1, 'did:key:a', 3, ${FORGED}, NULL, NULL)`],
])('the triggers reject another program’s statement: %s', async (_what, sql) => {
  const { path } = await writtenLog();
  const db = foreignConnection(path);
  const before = db.prepare('SELECT * FROM events').all();
  expect(() => db.prepare(sql).run()).toThrow(/append.only|CHECK constraint/);
  expect(db.prepare('SELECT * FROM events').all()).toEqual(before);
});

it('another program can read the file while the service runs', async () => {
  const { path } = await writtenLog();
  expect(foreignConnection(path).prepare('SELECT count(*) FROM events').pluck().get()).toBe(4);
});

it.each([
  ['a gap', [entry(1, 3), entry(1, 5)]],
  ['an existing event', [entry(1, 3), entry(1, 3)]],
  ['a stream that starts with 2', [entry(1, 3), entry(9, 2)]],
])('an append skips and reports a stream with %s', async (_what, entries) => {
  const { store } = await writtenLog();
  const stream = entries[1]?.stream as StreamId;
  const head = await store.log.lastEventId(stream);
  expect(await store.log.append({ entries: [...entries, entry(2, 2)] })).toEqual({
    conflicts: new Map([[stream, head]]),
    found: new Map(),
  });
  expect(await store.log.lastEventId(stream)).toBe(head);
  expect(await store.log.lastEventId(2)).toBe(2);
});

it('a batch with a duplicate signature is rejected as a whole, as a defect of the caller', async () => {
  const { store } = await writtenLog();
  const twin = entry(2, 2);
  const entries = [entry(1, 3), twin, entry(2, 3, { signature: twin.signature })];
  await expect(store.log.append({ entries })).rejects.toThrow('signature');
  expect([await store.log.lastEventId(1), await store.log.lastEventId(2)]).toEqual([2, 1]);
});

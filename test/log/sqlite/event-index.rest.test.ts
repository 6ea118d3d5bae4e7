// The index is filled now and then, for many events at once: before, while and after, every reader sees the same log.
import { expect, it } from 'vitest';
import { ALL_CHAMBERS, type EventLog, type LogEntry } from '../../../src/log/log.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { entry, intrude, openLog } from '../entries.ts';

const STREAMS = [1, 2, 'did:key:a', 3] as const;
/** Enough to fill the index more than once, and to leave it in the midst of the next time. */
const ROUNDS = 2_400;

/** One event for each stream in each round. */
function rounds(from: number, to: number): LogEntry[] {
  const ids = Array.from({ length: to - from }, (_, index) => from + index + 1);
  return ids.flatMap((eventId) =>
    STREAMS.map((stream) => entry(stream, eventId, typeof stream === 'string' ? { nodes: null } : {})),
  );
}

/** A page at a time, of an odd size, so that pages end on either side of the index's end. */
async function readAll(log: EventLog, stream: number | string, limit: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for (;;) {
    const { ndjson, count } = await log.readPage(stream, lines.length, limit);
    if (count === 0) return lines;
    const page = ndjson.toString().split('\n').slice(0, -1);
    expect(page).toHaveLength(count);
    lines.push(...page);
  }
}

async function expectWhole(log: EventLog, entries: readonly LogEntry[]): Promise<void> {
  for (const stream of STREAMS) {
    const own = entries.filter((each) => each.stream === stream);
    const lines = own.map(({ line }) => Buffer.from(line).toString());
    expect(await readAll(log, stream, 117)).toEqual(lines);
    expect(await log.lastEventId(stream)).toBe(own.length);
    // A page that begins in the index ends at the head all the same.
    if (own.length > 900) expect((await log.readPage(stream, own.length - 900, 1_000)).count).toBe(900);
  }
  const keys = entries.map(({ signature }) => signature as string);
  const { found } = await log.append({ entries: [], signatures: keys });
  expect([...found.values()]).toEqual(entries.map(({ line }) => Buffer.from(line).toString()));
  const [node] = await log.readNodes(1, [{ eventId: 1, level: 0 }]);
  expect(Buffer.from(node ?? [])).toEqual(Buffer.from(entries[0]?.nodes ?? []));
  expect(await log.lastEventId(ALL_CHAMBERS)).toBe(3);
}

async function write(log: EventLog, entries: readonly LogEntry[]): Promise<void> {
  for (let at = 0; at < entries.length; at += 37) await log.append({ entries: entries.slice(at, at + 37) });
}

function indexedThrough(path: string): number {
  return Number(intrude(path).prepare("SELECT value FROM meta WHERE name = 'indexed_through'").pluck().get());
}

it('pages, heads, signatures and nodes are found wherever the index ends, before and after a restart', async () => {
  const path = temporaryDatabase();
  const store = openSqliteStore(path);
  const entries = rounds(0, ROUNDS);
  await write(store.log, entries);
  expect(indexedThrough(path)).toBeGreaterThan(4_000);
  expect(indexedThrough(path)).toBeLessThan(entries.length);
  await expectWhole(store.log, entries);
  await store.close();

  const again = openLog(path);
  await expectWhole(again.log, entries);
  const more = rounds(ROUNDS, ROUNDS + 300);
  await write(again.log, more);
  await expectWhole(again.log, [...entries, ...more]);
});

it('a signature is found once it is indexed, also where another has the same prefix', async () => {
  const store = openLog();
  const [first, second, third] = ['0', '1', '2'].map((last) => '7'.repeat(71) + last) as [string, string, string];
  await store.log.append({
    entries: [entry('did:key:z', 1, { signature: first }), entry('did:key:z', 2, { signature: second })],
  });
  const look = async () => [...(await store.log.append({ entries: [], signatures: [first, second, third] })).found];
  const found = await look();
  expect(found).toEqual([
    [first, expect.stringContaining('"eventId":1')],
    [second, expect.stringContaining('"eventId":2')],
  ]);
  await write(store.log, rounds(0, ROUNDS));
  expect(await look()).toEqual(found);
});

it('a batch that fails while it writes to the index leaves everything as it was', async () => {
  const path = temporaryDatabase();
  const store = openLog(path);
  const entries = rounds(0, 1_200);
  await write(store.log, entries);
  const intruder = intrude(path);
  intruder.exec("CREATE TRIGGER broken BEFORE INSERT ON stream_events BEGIN SELECT RAISE(ABORT, 'no index'); END");
  const more = rounds(1_200, 1_220);
  await expect(store.log.append({ entries: more })).rejects.toThrow('no index');
  intruder.exec('DROP TRIGGER broken');
  await expectWhole(store.log, entries);
  await write(store.log, more);
  const rest = rounds(1_220, 2_000);
  await write(store.log, rest);
  await expectWhole(store.log, [...entries, ...more, ...rest]);
});

it.each(['99', '-1'])('a log whose index says that it ends at %s is not opened', async (through) => {
  const path = temporaryDatabase();
  const store = openSqliteStore(path);
  await store.log.append({ entries: [entry(1, 1)] });
  await store.close();
  const db = intrude(path);
  db.prepare("UPDATE meta SET value = ? WHERE name = 'indexed_through'").run(through);
  expect(() => openSqliteStore(path)).toThrow('chambers rebuild');
  db.exec("DELETE FROM meta WHERE name = 'indexed_through'");
  expect(() => openSqliteStore(path)).toThrow('chambers rebuild');
});

// Folds large streams from a log and prints their memory: `node --expose-gc memory-program.ts chambers|short-chambers|accounts`.
import { Streams } from '../../src/forum/streams.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import { FullLogWriter, LONGEST_TEXT } from '../kit/full-log.ts';

const store = openSqliteStore(':memory:');
const writer = new FullLogWriter(store.log);
const [what] = process.argv.slice(2);
const ids: StreamId[] = [];
const count = what === 'accounts' ? 300 : what === 'chambers' ? 3 : 10;
for (let at = 1; at <= count; at++) {
  const stream = what === 'accounts' ? `did:key:z6Mk${at}` : at;
  if (typeof stream === 'string') await writer.writeAccounts([{ did: stream, pubkeyHex: `0x${'12'.repeat(32)}` }]);
  else
    await writer.writeChamber(stream, {
      text: what === 'chambers' ? LONGEST_TEXT : '',
      backed: what === 'chambers' ? 2 : 20,
    });
  ids.push(stream);
}

const open = () => new Streams(store, 1_000_000_000);
// The first fold is not measured, because it allocates memory that is never freed.
await open().at(ids[0] as number);
const cache = open();
const heapUsed = () => {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  const { heapUsed: heap, external } = process.memoryUsage();
  return heap + external;
};
const before = heapUsed();
for (const id of ids) await cache.at(id as number);
process.stdout.write(`${JSON.stringify({ heap: heapUsed() - before, estimate: cache.bytes })}\n`);
await store.close();

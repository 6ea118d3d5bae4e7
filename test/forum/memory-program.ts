// Folds fat streams from a log and prints what they take: `node --expose-gc memory-program.ts chambers|short-chambers|accounts`.
import { type Chamber, stageAccountEvent, stageChamberEvent } from '../../src/forum/staging.ts';
import { Streams } from '../../src/forum/streams.ts';
import type { LogEntry, StreamId } from '../../src/log/log.ts';
import { openSqliteLog } from '../../src/log/sqlite/sqlite-log.ts';
import type { AccountFact, MoveFact } from '../../src/vocabulary/events.ts';
import { DEADLINES, type Deadlines, toTimestamp } from '../../src/vocabulary/values.ts';

const NOW = Date.UTC(2030, 0, 1);
const MEMBERS = 256;
const CJK = '議';

const log = openSqliteLog(':memory:');

/** `text` of each idea; every member has committed to and revealed an allocation. */
async function writeChamber(chamberId: number, text: string): Promise<void> {
  const entries: LogEntry[] = [];
  let chamber: Chamber | undefined;
  const stage = (did: string, fact: MoveFact) => {
    const author = { did, request: null, signature: null };
    const staged = stageChamberEvent(chamber, chamberId, fact, { author, now: NOW });
    chamber = staged.after;
    entries.push(staged.entry);
  };
  const times = DEADLINES.map((name, index) => [name, toTimestamp(NOW + 3_600_000 * (index + 1))]);
  const deadlines = Object.fromEntries(times) as Deadlines;
  const created = { name: 'Full', deadlines, minBackersForGraduation: 1, turnSeconds: null };
  const dids = Array.from({ length: MEMBERS }, (_, index) => `did:key:z6Mk${chamberId}x${index}`.padEnd(56, 'a'));
  stage(dids[0] as string, { type: 'chamber.created', payload: created });
  for (const [turnOrder, did] of dids.entries()) {
    stage(did, { type: 'chamber.joined', payload: { turnOrder } });
    const slot = turnOrder + 1;
    const named = { ideaId: `idea-${slot}`, slot, name: `Idea ${slot}`, ticker: `T${slot}` };
    const payload = { ...named, description: text, creatorWallet: `0x${'ab'.repeat(20)}` };
    stage(did, { type: 'chamber.proposed', payload });
    stage(did, { type: 'allocation.committed', payload: { commitment: `0x${'cd'.repeat(32)}` } });
    const allocations = Array.from({ length: 20 }, (_, at) => ({ ideaId: `idea-${at + 1}`, bps: 500 }));
    stage(did, { type: 'allocation.revealed', payload: { allocations, salt: `0x${'ef'.repeat(16)}` } });
  }
  await log.append(entries);
}

async function writeAccount(did: string): Promise<void> {
  const words = Array.from({ length: 50 }, (_, index) => CJK.repeat(100) + index);
  const personality = { loves: words, hates: words, expertise: words, style: CJK.repeat(500) };
  const payload = {
    agentId: did,
    pubkeyHex: `0x${'12'.repeat(32)}`,
    walletAddress: `0x${'ab'.repeat(20)}`,
    personality,
  };
  const fact = { type: 'agent.registered', payload } as AccountFact;
  const { entry } = stageAccountEvent(undefined, fact, { did, request: null, signature: null }, { now: NOW });
  await log.append([entry]);
}

const [what] = process.argv.slice(2);
const ids: StreamId[] = [];
const count = what === 'accounts' ? 300 : what === 'chambers' ? 3 : 10;
for (let at = 1; at <= count; at++) {
  const stream = what === 'accounts' ? `did:key:z6Mk${at}` : at;
  if (typeof stream === 'string') await writeAccount(stream);
  else await writeChamber(stream, what === 'chambers' ? CJK.repeat(8_192) : '');
  ids.push(stream);
}

const cache = new Streams(log, 1_000_000_000);
// Once, so that what the first fold allocates for good is not counted.
await cache.load(ids[0] as number);
cache.forget(ids[0] as number);
const heapUsed = () => {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  const { heapUsed: heap, external } = process.memoryUsage();
  return heap + external;
};
const before = heapUsed();
for (const id of ids) await cache.load(id as number);
process.stdout.write(`${JSON.stringify({ heap: heapUsed() - before, estimate: cache.bytes })}\n`);
await log.close();

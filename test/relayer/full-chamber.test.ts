// The relayer shares its thread with the service, so a chamber full of long ideas must not block that thread.
import { existsSync, readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { MemoryForum } from './memory-forum.ts';
import { openRelayerChain, type RelayerChain } from './relayer-chain.ts';

/** The CPU time of this thread in nanoseconds, independent of other processes. */
const SCHEDSTAT = '/proc/thread-self/schedstat';
const IDEAS = 40;
/** Ideas that warm up the code before the measurement. */
const WARM_UP_IDEAS = 10;
/** Encoding and signing 25 KB takes under 10 ms; encoding every idea takes over 50 ms. */
const TURN_MILLIS_MAX = 30;
/** Garbage collection may slow one turn down. */
const SLOW_TURNS_MAX = 1;

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain();
});

test.skipIf(!existsSync(SCHEDSTAT))(
  'the relayer deploys many long ideas in short turns of the event loop',
  async () => {
    const { forum } = opened;
    const description = '猫'.repeat(8_192);
    const ideas = Array.from({ length: IDEAS }, (_, index) => ({
      ticker: `T${index}`,
      backers: 1 as const,
      description,
    }));
    addChamber(forum, 1, ideas.slice(0, WARM_UP_IDEAS));
    opened.relayer();
    await until(() => forum.facts('idea.deployed').length === WARM_UP_IDEAS);
    addChamber(forum, 2, ideas);
    const turns = measureTurns();
    await until(() => forum.facts('idea.deployed').length === WARM_UP_IDEAS + IDEAS);
    const slow = turns.stop().filter((millis) => millis > TURN_MILLIS_MAX);
    expect(slow.length, `turns of ${slow.map(Math.round)} ms`).toBeLessThanOrEqual(SLOW_TURNS_MAX);
  },
);

test('the relayer encodes the text of an idea once each for estimate and signature, however many rounds follow', async () => {
  const { forum } = opened;
  const ideas = Array.from({ length: IDEAS }, (_, index) => ({ ticker: `T${index}`, backers: 1 as const }));
  addChamber(forum, 1, ideas);
  const encoded = countEncodings(forum);
  opened.relayer();
  await until(() => forum.facts('idea.deployed').length === IDEAS);
  // Estimate and signature share one encoding; a request without a response causes another.
  expect(encoded.count).toBeLessThan(2 * IDEAS);
});

/** Counts the relayer's reads of a description, which it needs only for calldata. */
function countEncodings(forum: MemoryForum): { readonly count: number } {
  const encoded = { count: 0 };
  const read = forum.chamber.bind(forum);
  forum.chamber = async (chamberId) => {
    const chamber = await read(chamberId);
    if (chamber === undefined) return undefined;
    const ideas = chamber.state.ideas.map(({ description, ...idea }) => ({
      ...idea,
      get description() {
        encoded.count++;
        return description;
      },
    }));
    return { ...chamber, state: { ...chamber.state, ideas } };
  };
  return encoded;
}

/** Records the CPU time of this thread in each turn of the event loop. */
function measureTurns(): { readonly stop: () => readonly number[] } {
  const turns: number[] = [];
  let last = cpuMillis();
  let next = setImmediate(measure);
  function measure(): void {
    const now = cpuMillis();
    turns.push(now - last);
    last = now;
    next = setImmediate(measure);
  }
  const stop = () => {
    clearImmediate(next);
    return turns;
  };
  return { stop };
}

function cpuMillis(): number {
  return Number(readFileSync(SCHEDSTAT, 'utf8').split(' ')[0]) / 1e6;
}

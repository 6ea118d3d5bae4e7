// The same search with a real chain that is asked (`--rpc`): what lines claim of it, chambers that it has settled, and balances.
// CHAIN_FORGERIES=5000 makes so many changes, without a limit of CPU time; FORGERY_SEED other ones, FORGERY_ONLY the one that a failure printed.
import { beforeAll, expect, test } from 'vitest';
import { openLiveService } from '../../client/live-service.ts';
import { playOnChain } from './chain-histories.ts';
import type { History } from './histories.ts';
import { honestVerdicts, search } from './search.ts';

const { CHAIN_FORGERIES, FORGERY_SEED = '1', FORGERY_ONLY } = process.env;
const CPU_MILLIS_MAX = 20_000;
const CHANGES = 3_000;
const [changes, cpuMillisMax] =
  CHAIN_FORGERIES === undefined ? [CHANGES, CPU_MILLIS_MAX] : [Number(CHAIN_FORGERIES), undefined];
const only = FORGERY_ONLY === undefined ? undefined : Number(FORGERY_ONLY);
const DAY = 86_400_000;

let from: readonly History[];
beforeAll(async () => {
  const live = await openLiveService({ CHAIN: '' });
  from = await playOnChain(live);
  return live.stop;
}, 120_000);

test('each history on a chain is sound before it is changed', async () => {
  for (const [name, isSound] of await honestVerdicts(from)) expect(isSound, name).toBe(true);
}, 60_000);

test(
  'no change of what a chain shows is called sound, but for what it can’t show',
  async () => {
    const { forgeries, limits, ...counts } = await search({
      from,
      seed: Number(FORGERY_SEED),
      changes,
      cpuMillisMax,
      only,
    });
    console.log(counts, Object.fromEntries(limits));
    const told = forgeries.map(({ history, seed, said, unexplained }) => ({ history, seed, said, unexplained }));
    expect(told).toEqual([]);
    if (only === undefined) expect(counts.changes).toBeGreaterThan(200);
  },
  CHAIN_FORGERIES === undefined ? 10 * CPU_MILLIS_MAX : DAY,
);

// The same search with a real chain (`--rpc`): claims in lines about it, settled chambers, and balances. CHAIN_FORGERIES=5000 sets
// the number of changes, without a limit of CPU time; FORGERY_SEED chooses other ones, FORGERY_ONLY repeats a printed one.
import { beforeAll, expect, test } from 'vitest';
import { openLiveService } from '../../client/live-service.ts';
import { playOnChain } from './chain-histories.ts';
import type { History } from './histories.ts';
import { honestVerdicts, search } from './search.ts';

const { CHAIN_FORGERIES, FORGERY_SEED = '1', FORGERY_ONLY } = process.env;
const CPU_MILLIS_MAX = 15_000;
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
  'no change of a chain’s history is called sound unless the chain can’t show it',
  async () => {
    const { forgeries, limits, ...counts } = await search({
      from,
      seed: Number(FORGERY_SEED),
      changes,
      cpuMillisMax,
      only,
    });
    console.log(counts, Object.fromEntries(limits));
    const found = forgeries.map(({ history, seed, said, unexplained }) => ({ history, seed, said, unexplained }));
    expect(found).toEqual([]);
    if (only === undefined) expect(counts.changes).toBeGreaterThan(200);
  },
  CHAIN_FORGERIES === undefined ? 10 * CPU_MILLIS_MAX : DAY,
);

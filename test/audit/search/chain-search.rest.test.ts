// The forgery search with a real chain (`--rpc`): claims about the chain, settled chambers, and balances. CHAIN_FORGERIES=5000 sets the
// number of changes and lifts the CPU time limit; FORGERY_SEED selects other changes, FORGERY_ONLY repeats a printed one.
import { beforeAll, expect, test } from 'vitest';
import { openLiveService } from '../../client/live-service.ts';
import { playOnChain } from './chain-histories.ts';
import type { History } from './histories.ts';
import { honestVerdicts, search } from './search.ts';

const { CHAIN_FORGERIES, FORGERY_SEED = '1', FORGERY_ONLY } = process.env;
const CPU_MILLIS_MAX = 6_000;
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

test('each unchanged history on a chain is sound', async () => {
  for (const [name, isSound] of await honestVerdicts(from)) expect(isSound, name).toBe(true);
}, 60_000);

test(
  'the auditor detects every change of a history on a chain that lines or chain can show',
  async () => {
    const { forgeries, limits, ...counts } = await search({
      from,
      seed: Number(FORGERY_SEED),
      changes,
      cpuMillisMax,
      only,
    });
    console.log(counts, Object.fromEntries(limits));
    const found = forgeries.map(({ history, seed, descriptions, unexplained }) => ({
      history,
      seed,
      descriptions,
      unexplained,
    }));
    expect(found).toEqual([]);
    if (only === undefined) expect(counts.changes).toBeGreaterThan(200);
  },
  CHAIN_FORGERIES === undefined ? 20 * CPU_MILLIS_MAX : DAY,
);

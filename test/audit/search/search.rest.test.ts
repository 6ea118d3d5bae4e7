// FORGERIES=100000 makes so many changes, without a limit of time; FORGERY_SEED other ones, FORGERY_ONLY the one that a failure printed.
import { expect, test } from 'vitest';
import { honestVerdicts, type Searched, search } from './search.ts';

const { FORGERIES, FORGERY_SEED = '1', FORGERY_ONLY } = process.env;
/** The part of CI that it may take. */
const CPU_MILLIS_MAX = 60_000;
/** On a machine that has as much to do beside it as CI has. */
const TEST_MILLIS_MAX = 10 * CPU_MILLIS_MAX;
const CHANGES = 20_000;
const [changes, cpuMillisMax] = FORGERIES === undefined ? [CHANGES, CPU_MILLIS_MAX] : [Number(FORGERIES), undefined];
const only = FORGERY_ONLY === undefined ? undefined : Number(FORGERY_ONLY);
const DAYS = 10 * 86_400_000;

test('each history is sound before it is changed', async () => {
  for (const [name, isSound] of await honestVerdicts()) expect(isSound, name).toBe(true);
}, 60_000);

test(
  'no change of a history is called sound, but for what lines can’t show',
  async () => {
    const searched = await search({ seed: Number(FORGERY_SEED), changes, cpuMillisMax, only, onProgress: tell });
    tell(searched);
    expect(searched.forgeries.map(({ seed, unexplained }) => ({ seed, unexplained }))).toEqual([]);
    if (only !== undefined) return;
    expect(searched.changes).toBeGreaterThan(1_000);
    expect(searched.turnsCompared).toBeGreaterThan(1_000);
  },
  FORGERIES === undefined ? TEST_MILLIS_MAX : DAYS,
);

function tell({ changes, found, limits, turnsCompared, forgeries }: Searched): void {
  const shown = [...limits].map(([why, count]) => `  ${count} ${why}`).join('\n');
  console.log(
    `${changes} changes, ${found} found, ${turnsCompared} turns compared, ${forgeries.length} sound forgeries\n${shown}`,
  );
  for (const { history, seed, said, unexplained } of forgeries)
    console.log(`FORGERY_ONLY=${seed} (${history}): ${said.join('; ')} => ${unexplained.join('; ')}`);
}

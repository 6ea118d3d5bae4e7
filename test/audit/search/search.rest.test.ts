// Searches for undetected forgeries. FORGERIES=100000 sets the number of changes and lifts the CPU time limit; FORGERY_SEED selects other
// changes, FORGERY_ONLY repeats a printed one.
import { expect, test } from 'vitest';
import { honestVerdicts, type Searched, search } from './search.ts';

const { FORGERIES, FORGERY_SEED = '1', FORGERY_ONLY } = process.env;
/** The CPU time that the search may take in CI. */
const CPU_MILLIS_MAX = 15_000;
/** Allows for a loaded machine, such as CI's. */
const TEST_MILLIS_MAX = 10 * CPU_MILLIS_MAX;
const CHANGES = 20_000;
const [changes, cpuMillisMax] = FORGERIES === undefined ? [CHANGES, CPU_MILLIS_MAX] : [Number(FORGERIES), undefined];
const only = FORGERY_ONLY === undefined ? undefined : Number(FORGERY_ONLY);
const DAYS = 10 * 86_400_000;

test('each unchanged history is sound', async () => {
  for (const [name, isSound] of await honestVerdicts()) expect(isSound, name).toBe(true);
}, 60_000);

test(
  'the auditor detects every change of a history that lines can show',
  async () => {
    const searched = await search({ seed: Number(FORGERY_SEED), changes, cpuMillisMax, only, onProgress: print });
    print(searched);
    expect(searched.forgeries.map(({ seed, unexplained }) => ({ seed, unexplained }))).toEqual([]);
    if (only !== undefined) return;
    expect(searched.changes).toBeGreaterThan(1_000);
    expect(searched.turnsCompared).toBeGreaterThan(1_000);
  },
  FORGERIES === undefined ? TEST_MILLIS_MAX : DAYS,
);

function print({ changes, found, limits, turnsCompared, forgeries }: Searched): void {
  const shown = [...limits].map(([why, count]) => `  ${count} ${why}`).join('\n');
  console.log(
    `${changes} changes, ${found} found, ${turnsCompared} turns compared, ${forgeries.length} sound forgeries\n${shown}`,
  );
  for (const { history, seed, descriptions, unexplained } of forgeries)
    console.log(`FORGERY_ONLY=${seed} (${history}): ${descriptions.join('; ')} => ${unexplained.join('; ')}`);
}

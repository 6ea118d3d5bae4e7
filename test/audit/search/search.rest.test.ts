// FORGERIES=100000 makes so many changes, without a limit of time; FORGERY_SEED other ones, FORGERY_ONLY the one that a failure printed.
import { expect, test } from 'vitest';
import { honestVerdicts, type Searched, search } from './search.ts';

const { FORGERIES, FORGERY_SEED = '1', FORGERY_ONLY } = process.env;
/** The part of CI that it may take. */
const MILLIS_MAX = 100_000;
const CHANGES = 20_000;
const [changes, millisMax] = FORGERIES === undefined ? [CHANGES, MILLIS_MAX] : [Number(FORGERIES), undefined];
const only = FORGERY_ONLY === undefined ? undefined : Number(FORGERY_ONLY);
const DAYS = 10 * 86_400_000;

test('each history is sound before it is changed', async () => {
  for (const [name, isSound] of await honestVerdicts()) expect(isSound, name).toBe(true);
}, 60_000);

test(
  'no change of a history is called sound, but for what lines can’t show',
  async () => {
    const searched = await search({ seed: Number(FORGERY_SEED), changes, millisMax, only, onProgress: tell });
    tell(searched);
    expect(searched.forgeries.map(({ seed, unexplained }) => ({ seed, unexplained }))).toEqual([]);
    if (only !== undefined) return;
    expect(searched.changes).toBeGreaterThan(1_000);
    expect(searched.turnsCompared).toBeGreaterThan(1_000);
  },
  FORGERIES === undefined ? MILLIS_MAX + 60_000 : DAYS,
);

function tell({ changes, found, limits, turnsCompared, forgeries }: Searched): void {
  const shown = [...limits].map(([why, count]) => `  ${count} ${why}`).join('\n');
  console.log(
    `${changes} changes, ${found} found, ${turnsCompared} turns compared, ${forgeries.length} sound forgeries\n${shown}`,
  );
  for (const { history, seed, said, unexplained } of forgeries)
    console.log(`FORGERY_ONLY=${seed} (${history}): ${said.join('; ')} => ${unexplained.join('; ')}`);
}

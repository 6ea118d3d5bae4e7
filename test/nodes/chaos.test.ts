// A short run of what `npm run test:nodes` does for a minute each, all at once, since most of the time is spent waiting.
import { expect, it } from 'vitest';
import { temporaryPostgres } from '../kit/postgres.ts';
import { MAIN } from '../kit/programs.ts';
import { runChaos } from './chaos.ts';
import { findPrograms } from './standby.ts';

it('three nodes lose no answered move, double none and show no stale read', async () => {
  const scenarios = ['kill-node', 'cut-commit', ...(findPrograms() === undefined ? [] : ['failover'])];
  const databaseUrls = await Promise.all(scenarios.map(() => temporaryPostgres()));
  const runs = scenarios.map(async (scenario, index) => {
    const databaseUrl = databaseUrls[index] as string;
    const outcome = await runChaos({ scenario, databaseUrl, millis: 3_000, clients: 12, seed: 1, program: MAIN });
    return [scenario, outcome?.problems, Math.min(outcome?.answered ?? 0, outcome?.disturbances ?? 0) > 0];
  });
  expect(await Promise.all(runs)).toEqual(scenarios.map((scenario) => [scenario, [], true]));
});

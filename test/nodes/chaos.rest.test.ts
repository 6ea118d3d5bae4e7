// A short form of `npm run test:nodes`. Scenarios run one at a time: on a busy machine, twelve simultaneous starts may not reach
// their database in time.
import { describe, expect, it } from 'vitest';
import { temporaryPostgres } from '../kit/postgres.ts';
import { MAIN } from '../kit/programs.ts';
import { runChaos } from './chaos.ts';
import { findPrograms } from './standby.ts';

describe('three nodes under faults', () => {
  const scenarios = ['kill-node', 'cut-commit', ...(findPrograms() === undefined ? [] : ['failover'])];
  it.each(scenarios)('three nodes lose or duplicate no accepted move and show no stale read: %s', async (scenario) => {
    const databaseUrl = await temporaryPostgres();
    const outcome = await runChaos({ scenario, databaseUrl, millis: 3_000, clients: 8, seed: 1, program: MAIN });
    expect(outcome?.problems).toEqual([]);
    expect(Math.min(outcome?.answered ?? 0, outcome?.disturbances ?? 0)).toBeGreaterThan(0);
  });
});

// A short form of `npm run test:soak`, which also accepts `--store postgres`.
import { describe, expect, it } from 'vitest';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { runSoak } from './soak.ts';

// The measurements read /proc.
describe.skipIf(process.platform !== 'linux')('a soak', () => {
  it('a soak leaks no resources despite faults of the chain, and commits every chamber', {
    timeout: 300_000,
  }, async () => {
    const store = { DATABASE_PATH: temporaryDatabase() };
    const load = {
      roundsPerQuarter: 1,
      chambersPerRound: 2,
      rpcCalls: 1_500,
      pageLoadsPerRound: 5,
      freezeMillis: 12_000,
    };
    expect(await runSoak({ folder: temporaryFolder(), store, ...load })).toEqual([]);
  });
});

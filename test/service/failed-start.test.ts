// A start that fails late leaves no threads behind.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openService } from '../kit/open-service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';

const TASKS = '/proc/self/task';
const STARTS = 4;
const THREADS = 4;

it.skipIf(!existsSync(TASKS))('a start that fails while it is composed ends its verifier threads', async () => {
  const policy = join(temporaryFolder(), 'policy');
  writeFileSync(policy, 'neither a log nor a witness');
  const before = readdirSync(TASKS).length;
  const settings = { WITNESS_POLICY_FILE: policy, VERIFIER_THREADS: String(THREADS) };
  const clock = { time: Date.now, elapsed: () => performance.now() };
  for (let start = 0; start < STARTS; start++) {
    await expect(openService(settings, { clock })).rejects.toMatchObject({ name: 'ConfigError' });
  }
  await until(() => readdirSync(TASKS).length < before + (STARTS * THREADS) / 2);
});

// The cache is limited by an estimate of the memory that states use. The estimate must never be too low.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { onSqliteOnly } from '../kit/store.ts';

onSqliteOnly('it uses no store');

const PROGRAM = fileURLToPath(new URL('./memory-program.ts', import.meta.url));

it.each(['chambers', 'short-chambers', 'accounts'])(
  'the estimate covers the heap usage of %s',
  (what) => {
    const args = ['--expose-gc', '--no-warnings', PROGRAM, what];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    const { heap, estimate } = JSON.parse(stdout || `{"error":${JSON.stringify(stderr)}}`);
    expect(heap).toBeGreaterThan(1_000_000);
    expect(estimate / heap).toBeGreaterThan(1);
    expect(estimate / heap).toBeLessThan(10);
  },
  180_000,
);

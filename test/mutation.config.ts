// The tests that mutation.mjs runs for each change: those of the pure code, in process.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    isolate: false,
    testTimeout: 60_000,
    include: ['moves', 'projections', 'crypto', 'vocabulary'].map((folder) => `test/${folder}/**/*.test.ts`),
  },
});

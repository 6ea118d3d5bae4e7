import { expect, it } from 'vitest';
import { expectDemoToEnd, runDemo, SLOW } from './run-demo.ts';

it('the demo ends with the same root on the chain and a token for each graduate', SLOW, () => expectDemoToEnd([]));

it('the demo with several nodes reports in one sentence that PostgreSQL cannot be reached', SLOW, async () => {
  const { err, exitCode } = await runDemo(['--nodes=2'], { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' });
  expect(exitCode).toBe(1);
  expect(err).toMatch(/^failure: [^\n]*127\.0\.0\.1:1[^\n]*\n$/);
});

// Audits a service while agents register, create chambers and move. The log grows constantly, and each audit must be sound.
// LIVE_AUDITS sets the number of audits.
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import { auditMain } from '../../src/audit/main.ts';
import { call, createChamber, newAgent, run } from '../kit/service.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';

const AUDITS = Number(process.env['LIVE_AUDITS'] ?? 2);
const MILLIS_OF_AUDIT = 90_000;
const PAUSE_MS = 100;
/** The number of lines after which the log grows more slowly, so that audits on a busy machine can catch up. */
const LINES_FAST = 1_000;

afterEach(() => {
  vi.restoreAllMocks();
});

it(`an honest service under load is sound in ${AUDITS} audits`, { timeout: AUDITS * MILLIS_OF_AUDIT }, async () => {
  const running = await run({ DATABASE_PATH: temporaryDatabase() });
  const printed: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((text: string) => void printed.push(text));
  let isOver = false;
  let lines = 0;
  const load = async () => {
    while (!isOver) {
      const by = await newAgent(running);
      const id = await createChamber(running, by);
      for (const agent of [by, await newAgent(running)]) await call(running, agent, ['POST', `/chambers/${id}/join`]);
      await pause(lines < LINES_FAST ? PAUSE_MS : 4 * PAUSE_MS);
      lines = await running.service.forum.store.log.lastPlace();
    }
  };
  const loads = [load(), load()];
  const codes: number[] = [];
  for (let i = 0; i < AUDITS; i++) {
    await pause(10 * PAUSE_MS);
    codes.push(
      await auditMain({ target: running.url, json: true, proofs: temporaryFolder(), now: running.clock.read }),
    );
  }
  isOver = true;
  await Promise.all(loads);
  const problems = printed.flatMap((text) => JSON.parse(text).problems);
  expect([problems, codes]).toEqual([[], new Array(AUDITS).fill(0)]);
  expect(lines).toBeGreaterThan(100);
});

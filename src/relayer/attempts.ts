// Attempts at a job cost gas: each one after a failure waits twice as long as the one before, the second failure raises an alert, and
// their number is bounded.
import type { Millis } from '../vocabulary/values.ts';
import type { RoundContext } from './context.ts';
import type { Job } from './jobs.ts';

const FIRST_PAUSE_MILLIS: Millis = 3_000;
const PAUSE_MILLIS_MAX: Millis = 3_600_000;
/** Further attempts at one job, from a start to the next. */
const ATTEMPTS_MAX = 10;
const ALERT_ATTEMPTS = 2;

/** At how many nonces the account has signed it. */
export function attemptsOf({ submitted }: Job): number {
  return new Set(submitted.map(({ nonce }) => nonce)).size;
}

/** Notes the attempts at an open job; to be called before each step. */
export function countAttempts(job: Job, { formerAttempts, spending }: RoundContext): void {
  if (job.outcome !== null) return;
  const attempts = attemptsOf(job);
  if (!formerAttempts.has(job.name)) formerAttempts.set(job.name, attempts);
  spending.setAttempts(job.name, attempts);
}

/** Whether a job whose latest transaction `failed` so long ago may be signed at another nonce now. */
export function mayTryAgain(job: Job, failed: string, ago: Millis, round: RoundContext): boolean {
  const { alerts, formerAttempts, spending } = round;
  const attempts = attemptsOf(job);
  const isAtBound = attempts - (formerAttempts.get(job.name) ?? attempts) >= ATTEMPTS_MAX;
  if (attempts >= ALERT_ATTEMPTS || isAtBound) {
    const next = isAtBound ? 'no further one is signed before a restart' : 'the next ones follow at growing intervals';
    alerts.raise(job.name, `${attempts} transactions ${failed} and cost ${spending.costOf(job.name)} ether: ${next}`);
  }
  return !isAtBound && ago >= Math.min(PAUSE_MILLIS_MAX, FIRST_PAUSE_MILLIS * 2 ** (attempts - 1));
}

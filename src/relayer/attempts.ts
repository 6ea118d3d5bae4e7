// Attempts at a job cost gas, so their number is limited, the pause between them doubles, and the second failure raises an alert.
import type { Millis } from '../vocabulary/values.ts';
import type { RoundContext } from './context.ts';
import type { Job } from './jobs.ts';

const FIRST_PAUSE_MILLIS: Millis = 3_000;
const PAUSE_MILLIS_MAX: Millis = 3_600_000;
/** The maximum number of new attempts at one job between two starts. */
const ATTEMPTS_MAX = 10;
const ALERT_ATTEMPTS = 2;

/** Returns the number of nonces with which the account has signed the job. */
export function attemptsOf({ submitted }: Job): number {
  return new Set(submitted.map(({ nonce }) => nonce)).size;
}

/** Must be called before each step of the job. */
export function countAttempts(job: Job, { formerAttempts, spending }: RoundContext): void {
  if (job.outcome !== null) return;
  const attempts = attemptsOf(job);
  if (!formerAttempts.has(job.name)) formerAttempts.set(job.name, attempts);
  spending.setAttempts(job.name, attempts);
}

/**
 * Whether the job may be signed with another nonce now. `ago` is the time since the job's latest transaction failed; `failed` describes
 * the failure in the alert.
 */
export function mayTryAgain(job: Job, failed: string, ago: Millis, round: RoundContext): boolean {
  const { alerts, formerAttempts, spending } = round;
  const attempts = attemptsOf(job);
  const isLimitReached = attempts - (formerAttempts.get(job.name) ?? attempts) >= ATTEMPTS_MAX;
  if (attempts >= ALERT_ATTEMPTS || isLimitReached) {
    const next = isLimitReached
      ? 'no more are signed before a restart'
      : 'the next attempts follow at growing intervals';
    alerts.raise(job.name, `${attempts} transactions ${failed} and cost ${spending.costOf(job.name)} ether: ${next}`);
  }
  return !isLimitReached && ago >= Math.min(PAUSE_MILLIS_MAX, FIRST_PAUSE_MILLIS * 2 ** (attempts - 1));
}

// The reports of a program that watches for an agent: data, and a sentence for people.
import type { TodoView } from '../../projections/todo.ts';
import { messageOf } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

export type WatchReport =
  | { readonly type: 'revealed'; readonly chamberId: number }
  /** A reveal failed for the first time. It is retried if the error is retryable. */
  | ({ readonly type: 'not-revealed' } & RevealProblem)
  /** The salt of a commitment is not in the agent's store, but there is still time to copy it there. */
  | ({ readonly type: 'unrevealable' } & RevealProblem)
  /** The handler failed. It is called again after `retryMillis` if the duty is still open. */
  | { readonly type: 'duty-failed'; readonly duty: Duty; readonly error: unknown; readonly retryMillis: Millis }
  /** The todo list can't be read; reported once per outage. */
  | { readonly type: 'not-followed'; readonly error: unknown }
  /** The outage has ended. */
  | { readonly type: 'followed-again' };

export interface RevealProblem {
  readonly chamberId: number;
  readonly error: unknown;
  readonly phaseEndsAt: TodoView['phaseEndsAt'];
}

/** An action that the agent must take now: end its turn, or commit. The watching program reveals automatically. */
export type Duty = TodoView & { readonly must: 'pass' | 'commit' };

export type Report = (report: WatchReport) => void;

export function reportText(report: WatchReport): string {
  switch (report.type) {
    case 'revealed':
      return `revealed in chamber ${report.chamberId}`;
    case 'not-revealed':
      return `not revealed in chamber ${report.chamberId}: ${problemText(report)}`;
    case 'unrevealable':
      return `chamber ${report.chamberId}: ${problemText(report)}`;
    case 'duty-failed': {
      const { duty, error, retryMillis } = report;
      const seconds = Math.ceil(retryMillis / 1_000);
      return `chamber ${duty.chamberId}: ${duty.must} failed: ${textOf(error)}; next attempt in ${seconds} s if it is still due`;
    }
    case 'not-followed':
      return `cannot follow the service: ${textOf(report.error)}`;
    case 'followed-again':
      return 'following the service again';
    default:
      return report satisfies never;
  }
}

export function isProblem({ type }: WatchReport): boolean {
  return type !== 'revealed' && type !== 'followed-again';
}

/** Returns why an allocation can't be revealed and, if its salt is missing, the remedy. */
export function problemText({ error, phaseEndsAt }: Omit<RevealProblem, 'chamberId'>): string {
  if (!(error instanceof ClientError) || error.code !== 'CLIENT_ERR_COMMITMENT') return textOf(error);
  return `${error.detail}. Tell the operator: copy the folder <key file>.commitments from the machine where the allocation was committed, and restart this program, before the reveal ends (this phase ends at ${phaseEndsAt}). Otherwise the allocation does not count`;
}

function textOf(error: unknown): string {
  const text = messageOf(error);
  return error instanceof ClientError && error.step === 'registration' ? `${text}; run chambers agent register` : text;
}

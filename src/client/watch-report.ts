// What a program that watches for an agent has to report: data, and a sentence for people.
import type { TodoView } from '../../projections/todo.ts';
import type { Millis } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

export type WatchReport =
  | { readonly type: 'revealed'; readonly chamberId: number }
  /** A reveal failed for the first time. It is tried again if the error is retryable. */
  | ({ readonly type: 'not-revealed' } & RevealProblem)
  /** The salt of a commitment is not in the agent's store: there is still time to copy it there. */
  | ({ readonly type: 'unrevealable' } & RevealProblem)
  /** The duty is handed over again after `retryMillis` if it is still open. */
  | { readonly type: 'duty-failed'; readonly duty: Duty; readonly error: unknown; readonly retryMillis: Millis }
  /** Reported once while the condition lasts. */
  | { readonly type: 'not-followed'; readonly error: unknown }
  /** The condition has ended. */
  | { readonly type: 'followed-again' };

export interface RevealProblem {
  readonly chamberId: number;
  readonly error: unknown;
  readonly phaseEndsAt: TodoView['phaseEndsAt'];
}

/** What an agent must do now: end its turn, or commit. The watching program makes reveals by itself. */
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
      return `chamber ${duty.chamberId}: ${duty.must} failed: ${textOf(error)}; next try in ${seconds} s while it is due`;
    }
    case 'not-followed':
      return `the service is not followed: ${textOf(report.error)}`;
    case 'followed-again':
      return 'the service is followed again';
    default:
      return report satisfies never;
  }
}

/** Reports of what went well; the others are problems. */
export function isGoodNews({ type }: WatchReport): boolean {
  return type === 'revealed' || type === 'followed-again';
}

/** The reason why an allocation can't be revealed and, if its salt is lost, the remedy. */
export function problemText({ error, phaseEndsAt }: Omit<RevealProblem, 'chamberId'>): string {
  if (!(error instanceof ClientError) || error.code !== 'CLIENT_ERR_COMMITMENT') return textOf(error);
  return `${error.detail}. Tell the operator: copy the folder <key file>.commitments from where the allocation was committed, and restart this program, before the reveal ends (this phase ends at ${phaseEndsAt}). Without it the allocation does not count`;
}

function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return error instanceof ClientError && error.step === 'registration' ? `${text}; run chambers agent register` : text;
}

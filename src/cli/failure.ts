// Failures of the command line: one sentence and an exit code, never a stack trace.
import { ClientError, type ClientErrorCode } from '../client/error.ts';
import { ForumError } from '../vocabulary/errors.ts';

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  verification: 3,
  authentication: 4,
  conflict: 5,
  unreachable: 6,
} as const;

/** The call itself was wrong; the message says what to write instead. */
export class UsageError extends Error {}

export interface Failure {
  readonly error: string;
  readonly detail: string;
  readonly exitCode: number;
  readonly expected?: object;
}

const EXIT_OF: Partial<Record<ClientErrorCode, number>> = {
  FORUM_ERR_VALIDATION: EXIT.usage,
  CLIENT_ERR_INPUT: EXIT.usage,
  CLIENT_ERR_CHAIN: EXIT.verification,
  CLIENT_ERR_PROOF: EXIT.verification,
  FORUM_ERR_SIGNATURE: EXIT.authentication,
  CLIENT_ERR_KEY: EXIT.authentication,
  FORUM_ERR_PHASE: EXIT.conflict,
  FORUM_ERR_TURN: EXIT.conflict,
  FORUM_ERR_MEMBER: EXIT.conflict,
  FORUM_ERR_CONFLICT: EXIT.conflict,
  FORUM_ERR_UNAVAILABLE: EXIT.unreachable,
  CLIENT_ERR_UNREACHABLE: EXIT.unreachable,
};

export function toFailure(error: unknown): Failure {
  if (error instanceof UsageError) return { error: 'usage', detail: error.message, exitCode: EXIT.usage };
  if (error instanceof ClientError || error instanceof ForumError) {
    const { code, message, expected } = error;
    const exitCode = EXIT_OF[code] ?? EXIT.failure;
    return { error: code, detail: message, exitCode, ...(expected === undefined ? {} : { expected }) };
  }
  return { error: 'failure', detail: error instanceof Error ? error.message : String(error), exitCode: EXIT.failure };
}

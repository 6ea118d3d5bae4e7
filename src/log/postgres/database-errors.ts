// Classifies database errors by whether the failed work may have been written, and words them for operators and clients.
import pg from 'pg';
import { ForumError, unavailable } from '../../vocabulary/errors.ts';

/** A connection could not be opened, so nothing was sent. The message is that of the cause, with advice on certificate errors. */
export class CannotConnect extends Error {
  constructor(cause: unknown) {
    const { message = '', code = '' } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
    const isOtherName = code === 'ERR_TLS_CERT_ALTNAME_INVALID';
    const reason = isOtherName ? `${message}: use a host in DATABASE_URL that the certificate names` : message || code;
    super(UNTRUSTED.has(code) ? `the server’s certificate is not trusted (${code}): ${NAME_AUTHORITY}` : reason, {
      cause,
    });
  }
}

const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
const NAME_AUTHORITY = 'name the certificate of its authority in DATABASE_URL, as sslmode=verify-full&sslrootcert=FILE';

/** The server accepts no writes: it is a standby, or the database is read-only. */
export class NotWritable extends CannotConnect {
  constructor() {
    super(new Error('the server is read-only'));
  }
}

/** The connection ended or stopped responding during the work. */
export class ConnectionLost extends Error {
  constructor(cause: unknown) {
    super('the connection was lost', { cause });
  }
}

/** The caller's time is up, but the server is still executing the work, such as a commit that waits for a synchronous standby. */
export class StillExecuting extends Error {}

export class MissingPrivilege extends Error {}

/** The database can't be used as this log. The message is a single line. */
export class UnusableDatabase extends Error {}

/** The database has a different log. The logIds in the message are public. */
export class OtherLog extends UnusableDatabase {
  constructor(found: string | undefined, logId: string) {
    super(
      `the database holds ${found === undefined ? 'no log' : `log ${found}`}, but this service writes log ${logId}`,
    );
  }
}

/**
 * `lost`: the connection ended or could not be used, so the work may or may not have been done. `rolled back`: the server undid the
 * statement, so nothing was written.
 */
export type DatabaseFailure = 'lost' | 'rolled back';

/** SQLSTATEs of a server that is stopping or starting, or was demoted. */
const LOST = /^(08|57P0[1235]|25006)/;

/** Returns undefined for an error of this service, which may have occurred at any step. */
export function failureOf(error: unknown): DatabaseFailure | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof MissingPrivilege) return 'rolled back';
  if (error instanceof pg.DatabaseError) {
    // Servers translate the severity. Only the English ERROR proves that the statement was undone.
    return error.severity === 'ERROR' && !LOST.test(error.code ?? '') ? 'rolled back' : 'lost';
  }
  const classes = [ConnectionLost, CannotConnect, UnusableDatabase];
  return classes.some((each) => error instanceof each) ? 'lost' : undefined;
}

/** Whether the driver timed out waiting for a response. Its error has no class and no code. */
export function isResponseTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}

/** Returns the error for callers of the store: FORUM_ERR_UNAVAILABLE, or the error itself if it is a bug in the service. */
export function toLogError(error: unknown): unknown {
  return error instanceof StillExecuting || failureOf(error) !== undefined ? logUnavailable(error) : error;
}

/** Returns FORUM_ERR_UNAVAILABLE with the reason, or an existing ForumError unchanged. */
export function logUnavailable(cause?: unknown): ForumError {
  if (cause instanceof ForumError) return cause;
  if (cause instanceof OtherLog) return unavailable(`${cause.message}: nothing is written`, cause);
  const can = failureOf(cause) === 'rolled back' ? 'used' : 'reached';
  return unavailable(`the log cannot be ${can} at the moment (${reasonOf(cause)}), retry`, cause);
}

/** Adds to an error for callers that the log may have accepted the request. */
export function withDoubt(error: unknown): unknown {
  if (!(error instanceof ForumError)) return error;
  const { code, message, retryAfterSeconds, cause } = error;
  const detail = `${message}; the request may have been accepted`;
  return new ForumError(code, detail, { retryAfterSeconds, mayBeAccepted: true, cause });
}

/** Names no host, user or table, because any client may read the reason. */
function reasonOf(cause: unknown): string {
  if (cause instanceof NotWritable) return 'the database is read-only';
  if (cause instanceof CannotConnect || cause instanceof ConnectionLost) return reasonOf(cause.cause);
  if (cause instanceof UnusableDatabase) return 'the database cannot be used for this log';
  if (cause instanceof MissingPrivilege) return LACKS_PERMISSION;
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  if (typeof code !== 'string') return 'the database does not respond';
  if (!(cause instanceof pg.DatabaseError)) return code;
  const known = REASONS.find(([pattern]) => pattern.test(code));
  return `${known === undefined ? '' : `${known[1]}, `}SQLSTATE ${code}`;
}

const LACKS_PERMISSION = 'the database role lacks a permission';

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^25006/, 'the database is read-only'],
  [/^26000/, 'a prepared statement is missing, as happens behind a pooler that shares sessions'],
  [/^28/, 'the database rejects the login'],
  [/^40/, 'transactions conflict'],
  [/^42501/, LACKS_PERMISSION],
  [/^53100/, 'the database’s disk is full'],
  [/^53300/, 'the database has no connections left'],
  [/^53/, 'the database is short of resources'],
  [/^57P0/, 'the database is starting or stopping'],
];

// Errors with which PostgreSQL or SQLite reports that nothing was written, as the stores' own rules pass them to callers.
import Database from 'better-sqlite3';
import pg from 'pg';
import { toLogError } from '../../../src/log/postgres/database-errors.ts';
import { Failures } from '../../../src/log/sqlite/failures.ts';
import { failureOf } from '../../../src/log/sqlite/transactions.ts';

/** A revoked privilege, a full disk, a conflict, a limit, a broken index, a value out of range. */
const SQLSTATES = ['42501', '53100', '40001', '54000', 'XX000', '22003'];
/** A full disk, a quota, another program's lock, a read-only file. */
const SQLITE_CODES = ['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'SQLITE_BUSY', 'SQLITE_READONLY'];

/** Returns the errors in turn. */
export function refusal(index: number): unknown {
  const errors = [...SQLSTATES.map(refusedByServer), ...SQLITE_CODES.map(refusedBySqlite)];
  return errors[index % errors.length];
}

function refusedByServer(code: string): unknown {
  const error = new pg.DatabaseError('refused', 0, 'error');
  return toLogError(Object.assign(error, { severity: 'ERROR', code }));
}

/** The error leaves no transaction open and the file unchanged. */
function refusedBySqlite(code: string): unknown {
  const error = Object.assign(new Database.SqliteError('refused', code), { isRolledBack: true });
  return new Failures(() => {}).ofWrite(failureOf(error));
}

// Errors by which a server, or SQLite, says that nothing was written: as callers of the stores get them, by the stores' own rules.
import Database from 'better-sqlite3';
import pg from 'pg';
import { toLogError } from '../../../src/log/postgres/database-errors.ts';
import { Failures } from '../../../src/log/sqlite/failures.ts';
import { failureOf } from '../../../src/log/sqlite/transactions.ts';

/** A right that was revoked, a full disk, a conflict, a limit, a broken index, a value out of range. */
const SQLSTATES = ['42501', '53100', '40001', '54000', 'XX000', '22003'];
/** A full disk, a quota, another program's lock, a file that was made read-only. */
const SQLITE_CODES = ['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'SQLITE_BUSY', 'SQLITE_READONLY'];

/** One after the other. */
export function refusal(index: number): unknown {
  const errors = [...SQLSTATES.map(refusedByServer), ...SQLITE_CODES.map(refusedBySqlite)];
  return errors[index % errors.length];
}

function refusedByServer(code: string): unknown {
  const error = new pg.DatabaseError('refused', 0, 'error');
  return toLogError(Object.assign(error, { severity: 'ERROR', code }));
}

/** The transaction is over, and the file is as it was. */
function refusedBySqlite(code: string): unknown {
  const error = Object.assign(new Database.SqliteError('refused', code), { isRolledBack: true });
  return new Failures(() => {}).ofWrite(failureOf(error));
}

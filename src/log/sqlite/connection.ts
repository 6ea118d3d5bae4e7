// A connection of this thread as the port that the shared statements run on.
import type { Database } from 'better-sqlite3';
import type { Sql, SqlTransaction, SqlValue } from '../sql/sql.ts';
import { SQLITE } from './dialect.ts';
import { type NumberedStatement, prepareNumbered } from './statements.ts';

const ROWS_PER_PAGE = 500;

export interface SqliteSql extends Sql {
  /** The rows up to the first one that is enough. */
  rowsUntil<Row>(text: string, values: readonly SqlValue[], isEnough: (row: Row) => boolean): Promise<readonly Row[]>;
}

/** `toError` returns what callers get for an error of SQLite's. */
export function sqlOn(db: Database, toError: (error: unknown) => unknown = (error) => error): SqliteSql {
  const prepared = new Map<string, NumberedStatement>();
  return {
    dialect: SQLITE,
    rowsUntil: async <Row>(text: string, values: readonly SqlValue[], isEnough: (row: Row) => boolean) => {
      try {
        const { statement, bind } = prepared.get(text) ?? prepareNumbered(db, text);
        prepared.set(text, { statement, bind });
        const rows: Row[] = [];
        for (const row of statement.iterate(...bind(values)) as IterableIterator<Row>) {
          rows.push(row);
          if (isEnough(row)) break;
        }
        return rows;
      } catch (error) {
        throw toError(error);
      }
    },
    query: async <Row>(text: string, values: readonly SqlValue[] = []) => {
      try {
        const { statement, bind } = prepared.get(text) ?? prepareNumbered(db, text);
        prepared.set(text, { statement, bind });
        if (statement.reader) return statement.all(...bind(values).map(toStored)) as readonly Row[];
        statement.run(...bind(values).map(toStored));
        return [];
      } catch (error) {
        throw toError(error);
      }
    },
  };
}

/** SQLite has no booleans. */
function toStored(value: SqlValue): SqlValue {
  return typeof value === 'boolean' ? Number(value) : value;
}

/** The caller begins and ends the transaction. */
export function transactionOn(db: Database): SqlTransaction {
  return {
    ...sqlOn(db),
    pages: (text) => pagesOf(db, text),
    run: async (script) => {
      db.exec(script);
    },
  };
}

async function* pagesOf<Row>(db: Database, text: string): AsyncGenerator<readonly Row[]> {
  db.unsafeMode(true);
  try {
    let page: Row[] = [];
    for (const row of db.prepare(text).iterate()) {
      page.push(row as Row);
      if (page.length < ROWS_PER_PAGE) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
  } finally {
    db.unsafeMode(false);
  }
}

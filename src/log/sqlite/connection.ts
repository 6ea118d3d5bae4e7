// SQLite's dialect of the shared SQL, and the port that runs it on a connection of this thread.
import type { Database, Statement } from 'better-sqlite3';
import type { ColumnType, Dialect, Sql, SqlTransaction, SqlValue } from '../sql/sql.ts';

const ROWS_PER_PAGE = 500;

const TYPES: Readonly<Record<ColumnType, string>> = {
  integer: 'INTEGER',
  text: 'TEXT',
  boolean: 'INTEGER',
  bytes: 'BLOB',
  json: 'TEXT',
};

/** The line's `ts` in milliseconds; null if the line is not JSON. A generated column would be computed at every insert. */
const LINE_TIME = `CASE WHEN json_valid(line) THEN CAST(round(unixepoch(json_extract(line, '$.ts'), 'subsec') * 1000) AS INTEGER) END`;

/** Lines are stored as text, so that other programs can read them, and returned as bytes, because a damaged line may not be valid text. */
const LINES = `(SELECT position AS place, stream, event_id, ${LINE_TIME} AS at, CAST(line AS BLOB) AS line, signature, nodes, line_crc, nodes_crc
  FROM events)`;

export const SQLITE: Dialect = {
  types: TYPES,
  tableOptions: ({ key, columns }) =>
    key.length > 1 && !columns.some(({ type }) => type === 'bytes') ? 'STRICT, WITHOUT ROWID' : 'STRICT',
  // One index for all phases: without statistics, SQLite would not choose well between one index per phase and the order of ids.
  indexes: [
    'chambers_open ON chambers (chamber_id, lobby_deadline, proposal_deadline, debate_deadline, allocate_commit_deadline) WHERE NOT is_committed',
  ],
  listed: (parameter, columns) => {
    const values = Object.entries(columns).map(([name, type]) => {
      const value = `value ->> '${name}'`;
      return `${type === 'bytes' ? `unhex(${value})` : value} AS ${name}`;
    });
    return `(SELECT key AS place, ${values.join(', ')} FROM json_each(${parameter}))`;
  },
  streamKey: (stream) => stream,
  // A DID never begins with a digit.
  streamOf: (column) => `iif(${column} GLOB '[0-9]*', CAST(${column} AS INTEGER), ${column})`,
  lineOf: (parameter) => `CAST(${parameter} AS TEXT)`,
  // The + removes the id's type affinity, because `stream` has none.
  chamberKey: (column) => `+${column}`,
  lines: LINES,
  places: '(SELECT position AS place, stream, event_id FROM events)',
  placedLines: LINES,
};

/** A statement with numbered parameters, beginning with `$1`. The driver itself binds only by order or by name. */
export interface NumberedStatement {
  readonly statement: Statement<unknown[]>;
  /** Returns the values in the order in which the statement uses them. */
  readonly bind: (values: readonly SqlValue[]) => readonly SqlValue[];
}

export function prepareNumbered(db: Database, text: string): NumberedStatement {
  const order = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number) - 1);
  const statement = db.prepare<unknown[]>(text.replace(/\$\d+/g, '?'));
  const isInOrder = order.every((index, use) => index === use);
  const bind = (values: readonly SqlValue[]) => (isInOrder ? values : order.map((index) => values[index] ?? null));
  return { statement, bind };
}

export interface SqliteSql extends Sql {
  /** Returns the rows up to and including the first one for which `isEnough` returns true. */
  rowsUntil<Row>(text: string, values: readonly SqlValue[], isEnough: (row: Row) => boolean): Promise<readonly Row[]>;
}

/** `toError` converts SQLite's errors for callers. */
export function sqlOn(db: Database, toError: (error: unknown) => unknown = (error) => error): SqliteSql {
  const statements = new Map<string, NumberedStatement>();
  const prepare = (text: string): NumberedStatement => {
    const prepared = statements.get(text) ?? prepareNumbered(db, text);
    statements.set(text, prepared);
    return prepared;
  };
  return {
    dialect: SQLITE,
    rowsUntil: async <Row>(text: string, values: readonly SqlValue[], isEnough: (row: Row) => boolean) => {
      try {
        const { statement, bind } = prepare(text);
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
        const { statement, bind } = prepare(text);
        const stored = bind(values).map(toStored);
        if (statement.reader) return statement.all(...stored) as readonly Row[];
        statement.run(...stored);
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
  // Unsafe mode allows writes while the rows are iterated.
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

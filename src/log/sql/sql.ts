// What the log needs of a relational database. Statements are written once, in the SQL that SQLite and PostgreSQL share: `$1` stands for
// the first value, and a dialect has what differs.
import type { StreamId } from '../stream-id.ts';

/** Numbers are integers of at most 53 bits. SQLite returns 0 and 1 for booleans. */
export type SqlValue = string | number | boolean | Uint8Array | null;

/** `json` is text that no query searches. */
export type ColumnType = 'integer' | 'text' | 'boolean' | 'bytes' | 'json';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
}

export interface Table {
  readonly name: string;
  readonly key: readonly string[];
  readonly columns: readonly Column[];
}

export type Columns = Readonly<Record<string, ColumnType>>;

export interface Dialect {
  readonly types: Readonly<Record<ColumnType, string>>;
  /** What follows the columns of a table. */
  readonly tableOptions: (table: Table) => string;
  /** Indexes of derived tables that only this database needs: `name ON table (columns)`. */
  readonly indexes: readonly string[];
  /**
   * The rows that a parameter lists, from jsonRows, as an item of FROM. `place` is theirs in the list, from 0 on.
   */
  readonly listed: (parameter: string, columns: Columns) => string;
  /** A stream as the column `stream` of `events` has it: SQLite keeps ids of chambers as numbers, which take less room in its keys. */
  readonly streamKey: (stream: StreamId) => string | number;
  /** The same of a column with the id of a chamber. */
  readonly chamberKey: (column: string) => string;
  /** Every line with `stream`, `event_id`, `at`, `line`, `signature`, `nodes`, `line_crc` and `nodes_crc`, as an item of FROM. */
  readonly lines: string;
  /** `place`, `stream` and `event_id` of the lines that have a place. */
  readonly places: string;
  /** The lines with their places, as far as they have one. */
  readonly placedLines: string;
}

/** Statements on one database. Their texts are constants: each is prepared once. */
export interface Sql {
  readonly dialect: Dialect;
  query<Row>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>;
}

/** A transaction of a program that reads or writes a whole log. */
export interface SqlTransaction extends Sql {
  /** The rows of a long query, some at a time. Other tables may be written meanwhile. */
  pages<Row>(text: string): AsyncIterable<readonly Row[]>;
  /** Runs statements without values or rows. */
  run(script: string): Promise<void>;
}

/** The value of a parameter for `listed`: bytes are in hexadecimal digits. */
export function jsonRows(columns: Columns, rows: readonly Readonly<Record<string, SqlValue>>[]): string {
  const bytes = Object.keys(columns).filter((name) => columns[name] === 'bytes');
  if (bytes.length === 0) return JSON.stringify(rows);
  const toText = (value: SqlValue | undefined) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
  return JSON.stringify(
    rows.map((row) => ({ ...row, ...Object.fromEntries(bytes.map((name) => [name, toText(row[name])])) })),
  );
}

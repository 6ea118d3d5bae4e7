// The port of a relational database. Statements are written once, in the SQL that SQLite and PostgreSQL share, with `$1` for the first
// value; the dialect contains the differences.
import type { StreamId } from '../stream-id.ts';

/** Numbers are integers of at most 53 bits. SQLite returns 0 and 1 for booleans. */
export type SqlValue = string | number | boolean | Uint8Array | null;

/** `json` is text that queries return; they search one kind for a mark. */
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
  /** Ends a CREATE TABLE. */
  readonly tableOptions: (table: Table) => string;
  /** Further indexes of derived tables: `name ON table (columns)`. */
  readonly indexes: readonly string[];
  /** An item of FROM: the rows that a parameter from jsonRows lists. Their column `place` counts them from 0. */
  readonly listed: (parameter: string, columns: Columns) => string;
  /** A stream as the column `stream` of `events` stores it: SQLite stores chamber ids as numbers, which make its keys smaller. */
  readonly streamKey: (stream: StreamId) => string | number;
  /** The same from a column of text. */
  readonly streamOf: (column: string) => string;
  /** The same from a column with a chamber id. */
  readonly chamberKey: (column: string) => string;
  /** The column `line` of `events` from a parameter with its bytes. */
  readonly lineOf: (parameter: string) => string;
  /** An item of FROM: every line with `stream`, `event_id`, `at`, `line`, `signature`, `nodes`, `line_crc` and `nodes_crc`. */
  readonly lines: string;
  /** An item of FROM: `place`, `stream` and `event_id` of the lines that have a place. */
  readonly places: string;
  /** An item of FROM: the lines that have a place, with it. */
  readonly placedLines: string;
}

/** Statements on one database. Their texts are constants: each is prepared once. */
export interface Sql {
  readonly dialect: Dialect;
  query<Row>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>;
}

/** The transaction of a program that reads or writes a whole log. */
export interface SqlTransaction extends Sql {
  /** The rows of a long query, page by page. Other tables may be written meanwhile. */
  pages<Row>(text: string): AsyncIterable<readonly Row[]>;
  /** Runs statements without values or rows. */
  run(script: string): Promise<void>;
}

/** The value of a parameter for `listed`: bytes become hexadecimal digits. */
export function jsonRows(columns: Columns, rows: readonly Readonly<Record<string, SqlValue>>[]): string {
  const bytes = Object.keys(columns).filter((name) => columns[name] === 'bytes');
  if (bytes.length === 0) return JSON.stringify(rows);
  const toText = (value: SqlValue | undefined) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
  return JSON.stringify(
    rows.map((row) => ({ ...row, ...Object.fromEntries(bytes.map((name) => [name, toText(row[name])])) })),
  );
}

/** The stream that a column names: by a DID, or a chamber id that may be decimal text. */
export function toStream(stored: string | number): StreamId {
  return typeof stored === 'string' && /^\d+$/.test(stored) ? Number(stored) : stored;
}

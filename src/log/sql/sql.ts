// The port of a relational database. Statements are written once, in the SQL that SQLite and PostgreSQL share, with `$1` for the first
// value. The dialect contains the differences.
import type { StreamId } from '../stream-id.ts';

/** Numbers are integers of at most 53 bits. SQLite returns 0 and 1 for booleans. */
export type SqlValue = string | number | boolean | Uint8Array | null;

/** Queries return `json` as text. They do not search it, except for WITHDRAWN_MARK. */
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
  /** The options at the end of a CREATE TABLE. */
  readonly tableOptions: (table: Table) => string;
  /** Additional indexes on derived tables: `name ON table (columns)`. */
  readonly indexes: readonly string[];
  /** A FROM item with the rows that jsonRows encoded in a parameter. The column `place` numbers them from 0. */
  readonly listed: (parameter: string, columns: Columns) => string;
  /** The value of `events.stream` for a stream. SQLite stores chamber ids as numbers, which make its keys smaller. */
  readonly streamKey: (stream: StreamId) => string | number;
  /** The value of `events.stream` for a stream in a text column. */
  readonly streamOf: (column: string) => string;
  /** The value of `events.stream` for a column with a chamber id. */
  readonly chamberKey: (column: string) => string;
  /** The value of `events.line` for a parameter with the line's bytes. */
  readonly lineOf: (parameter: string) => string;
  /** A FROM item: every line with `stream`, `event_id`, `at`, `line`, `signature`, `nodes`, `line_crc` and `nodes_crc`. */
  readonly lines: string;
  /** A FROM item: `place`, `stream` and `event_id` of the lines that have a place. */
  readonly places: string;
  /** A FROM item: `lines` joined with `places`. */
  readonly placedLines: string;
}

/** Runs statements on one database. Statement texts are constants, so each is prepared once. */
export interface Sql {
  readonly dialect: Dialect;
  query<Row>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>;
}

/** The transaction of a program that reads or writes a whole log. */
export interface SqlTransaction extends Sql {
  /** Yields the rows of a long query page by page. Other tables may be written in the meantime. */
  pages<Row>(text: string): AsyncIterable<readonly Row[]>;
  /** Runs statements that take no values and return no rows. */
  run(script: string): Promise<void>;
}

/** Encodes rows for a `listed` parameter. Bytes become hexadecimal digits. */
export function jsonRows(columns: Columns, rows: readonly Readonly<Record<string, SqlValue>>[]): string {
  const bytes = Object.keys(columns).filter((name) => columns[name] === 'bytes');
  if (bytes.length === 0) return JSON.stringify(rows);
  const toText = (value: SqlValue | undefined) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
  return JSON.stringify(
    rows.map((row) => ({ ...row, ...Object.fromEntries(bytes.map((name) => [name, toText(row[name])])) })),
  );
}

/** Parses a stream column: a DID, or a chamber id that may be decimal text. */
export function toStream(stored: string | number): StreamId {
  return typeof stored === 'string' && /^\d+$/.test(stored) ? Number(stored) : stored;
}

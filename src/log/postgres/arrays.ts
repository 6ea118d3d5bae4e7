// Encodes rows as one array per column, in PostgreSQL's binary format. This takes half the time of the driver's text arrays.
import type { Millis } from '../../vocabulary/values.ts';
import type { StreamId } from '../stream-id.ts';

/** Encodes a value as an array element. `name` and `id` (OID) identify the type on the server. */
interface ElementType<Value> {
  readonly name: string;
  readonly id: number;
  readonly bytesOf: (value: Value) => number;
  readonly write: (array: Buffer, value: Value, at: number) => void;
}

const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;
const UINT32_RANGE = 2 ** 32;

export const BYTEA: ElementType<Uint8Array> = {
  name: 'bytea',
  id: 17,
  bytesOf: ({ length }) => length,
  write: (array, value, at) => array.set(value, at),
};

export const TEXT: ElementType<string> = {
  name: 'text',
  id: 25,
  bytesOf: (value) => Buffer.byteLength(value),
  write: (array, value, at) => {
    array.write(value, at);
  },
};

/** Writes two 32-bit halves, because a BigInt would take longer than everything else. */
export const BIGINT: ElementType<number> = {
  name: 'bigint',
  id: 20,
  bytesOf: () => 8,
  write: (array, value, at) => {
    array.writeInt32BE(Math.floor(value / UINT32_RANGE), at);
    array.writeUInt32BE(value >>> 0, at + 4);
  },
};

/** Encodes a one-dimensional array whose index starts at 1. Each element is its length and its bytes. */
export function encode<Value>(type: ElementType<Value>, values: readonly (Value | null)[]): Buffer {
  const lengths = values.map((value) => (value === null ? NULL_LENGTH : type.bytesOf(value)));
  const bytes = lengths.reduce((sum, length) => sum + LENGTH_BYTES + Math.max(0, length), 0);
  const array = Buffer.allocUnsafe(HEADER_BYTES + bytes);
  array.writeInt32BE(1, 0);
  array.writeInt32BE(lengths.includes(NULL_LENGTH) ? 1 : 0, 4);
  array.writeInt32BE(type.id, 8);
  array.writeInt32BE(values.length, 12);
  array.writeInt32BE(1, 16);
  let at = HEADER_BYTES;
  for (const [index, value] of values.entries()) {
    const length = lengths[index] as number;
    at = array.writeInt32BE(length, at);
    if (value === null) continue;
    type.write(array, value, at);
    at += length;
  }
  return array;
}

export interface ArrayColumn<Row> {
  readonly name: string;
  readonly type: string;
  readonly encode: (rows: readonly Row[]) => Buffer;
}

/** Call this once per column, not once per batch: V8 would recompile functions that are created for each batch. */
export function column<Row, Value>(
  name: string,
  type: ElementType<Value>,
  read: (row: Row) => Value | null,
): ArrayColumn<Row> {
  return { name, type: type.name, encode: (rows) => encode(type, rows.map(read)) };
}

/** Returns a FROM item with the rows whose columns are the parameters from `first` on. `place` numbers the rows from 1. */
export function unnested(columns: readonly ArrayColumn<never>[], first: number): string {
  const parameters = columns.map(({ type }, index) => `$${first + index}::${type}[]`);
  return `unnest(${parameters.join(', ')}) WITH ORDINALITY AS rows (${columns.map(({ name }) => name).join(', ')}, place)`;
}

export interface EventRow {
  readonly stream: StreamId;
  readonly event_id: number;
  readonly at: Millis;
  readonly line: Uint8Array;
  readonly signature: Uint8Array | null;
  readonly nodes: Uint8Array | null;
  readonly line_crc: number;
  readonly nodes_crc: number | null;
}

export const EVENT_COLUMNS: readonly ArrayColumn<EventRow>[] = [
  column('stream', TEXT, ({ stream }) => String(stream)),
  column('event_id', BIGINT, (row) => row.event_id),
  column('at', BIGINT, ({ at }) => at),
  column('line', BYTEA, ({ line }) => line),
  column('signature', BYTEA, ({ signature }) => signature),
  column('nodes', BYTEA, ({ nodes }) => nodes),
  column('line_crc', BIGINT, (row) => row.line_crc),
  column('nodes_crc', BIGINT, (row) => row.nodes_crc),
];
export const EVENT_COLUMN_NAMES = EVENT_COLUMNS.map(({ name }) => name).join(', ');

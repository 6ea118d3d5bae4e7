// Packs statements and their values into one buffer, which is transferred to the writer thread. Objects would be copied one by one.
import type { SqlValue } from '../sql/sql.ts';

export interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
  /** The transaction is rolled back if the statement changes fewer rows; at most 255. */
  readonly changesMin?: number;
}

/** Numbers the texts of statements, so that each text is sent to the writer thread only once. */
export class StatementTexts {
  readonly #numbers = new Map<string, number>();
  #unsent: string[] = [];

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(text, number);
    this.#unsent.push(text);
    return number;
  }

  /** Returns the texts that were not taken before, ordered by number. */
  takeUnsent(): readonly string[] {
    const unsent = this.#unsent;
    if (unsent.length > 0) this.#unsent = [];
    return unsent;
  }
}

const HEADER_BYTES = 4;
const STATEMENT_BYTES = 4;
const TAG_BYTES = 1;
const NUMBER_BYTES = 8;
const LENGTH_BYTES = 4;

const TAG = { null: 0, number: 1, text: 2, bytes: 3 } as const;

export function pack(statements: readonly Statement[], texts: StatementTexts): ArrayBuffer {
  let size = HEADER_BYTES;
  for (const { values } of statements) {
    size += STATEMENT_BYTES;
    for (const value of values) size += TAG_BYTES + bytesOf(value);
  }
  const packed = Buffer.from(new ArrayBuffer(size));
  let at = packed.writeUInt32LE(statements.length, 0);
  for (const { text, values, changesMin = 0 } of statements) {
    at = packed.writeUInt16LE(texts.numberOf(text), at);
    at = packed.writeUInt8(changesMin, at);
    at = packed.writeUInt8(values.length, at);
    for (const value of values) at = write(packed, value, at);
  }
  return packed.buffer as ArrayBuffer;
}

function bytesOf(value: SqlValue): number {
  if (value === null) return 0;
  if (typeof value === 'string') return LENGTH_BYTES + Buffer.byteLength(value);
  return typeof value === 'object' ? LENGTH_BYTES + value.length : NUMBER_BYTES;
}

function write(packed: Buffer, value: SqlValue, at: number): number {
  if (value === null) return packed.writeUInt8(TAG.null, at);
  if (typeof value === 'string') {
    const from = packed.writeUInt8(TAG.text, at) + LENGTH_BYTES;
    const length = packed.write(value, from);
    packed.writeUInt32LE(length, from - LENGTH_BYTES);
    return from + length;
  }
  if (typeof value === 'object') {
    const from = packed.writeUInt32LE(value.length, packed.writeUInt8(TAG.bytes, at));
    packed.set(value, from);
    return from + value.length;
  }
  return packed.writeDoubleLE(Number(value), packed.writeUInt8(TAG.number, at));
}

export interface UnpackedStatement {
  readonly number: number;
  readonly changesMin: number;
  readonly values: readonly (string | number | Buffer | null)[];
}

export function unpack(buffer: ArrayBuffer): readonly UnpackedStatement[] {
  const packed = Buffer.from(buffer);
  const statements: UnpackedStatement[] = [];
  let at = HEADER_BYTES;
  for (let left = packed.readUInt32LE(0); left > 0; left--) {
    const number = packed.readUInt16LE(at);
    const changesMin = packed.readUInt8(at + 2);
    const count = packed.readUInt8(at + 3);
    at += STATEMENT_BYTES;
    const values: (string | number | Buffer | null)[] = [];
    for (let index = 0; index < count; index++) {
      const tag = packed.readUInt8(at);
      at += TAG_BYTES;
      if (tag === TAG.null) values.push(null);
      else if (tag === TAG.number) {
        values.push(packed.readDoubleLE(at));
        at += NUMBER_BYTES;
      } else {
        const end = at + LENGTH_BYTES + packed.readUInt32LE(at);
        const bytes = packed.subarray(at + LENGTH_BYTES, end);
        values.push(tag === TAG.text ? bytes.toString() : bytes);
        at = end;
      }
    }
    statements.push({ number, changesMin, values });
  }
  return statements;
}

// The event log in one SQLite file.
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import type { StreamDamaged } from '../damage.ts';
import type { AppendBatch, AppendResult, Snapshot } from '../log.ts';
import { PAGE_BYTES } from '../pages.ts';
import {
  type EventLogParts,
  findDamage,
  SqlEventLog,
  type StoredLine,
  snapshotValues,
  WRITE_SNAPSHOT,
} from '../sql/event-log.ts';
import { type Columns, jsonRows, type SqlValue } from '../sql/sql.ts';
import { lastNumber } from '../sql/withheld-lines.ts';
import { withheldSignature } from '../sql/withheld-rows.ts';
import type { StreamId } from '../stream-id.ts';
import { append } from './append.ts';
import type { SqliteSql } from './connection.ts';
import { Conflict, type Writer } from './writer.ts';

interface Parts extends EventLogParts {
  readonly sql: SqliteSql;
  readonly writer: Writer;
}

export class SqliteEventLog extends SqlEventLog {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    super(parts);
    this.#parts = parts;
  }

  async append(batch: AppendBatch): Promise<AppendResult> {
    const { sql, writer, chamberIdMin, seen } = this.#parts;
    const result = await append(
      {
        writer,
        chamberIdMin,
        lastEventId: (stream) => this.lastEventId(stream),
        find: (keys) => this.find(keys),
        mayContain: (key) => this.mayContain(key),
        lastWithheld: () => lastNumber(sql),
      },
      batch,
    );
    for (const { stream, signature } of batch.entries)
      if (signature !== null && !result.conflicts.has(stream)) seen.add(signature);
    return result;
  }

  async find(signatureKeys: readonly string[]): Promise<AppendResult['found']> {
    const found = new Map<string, string | StreamDamaged>();
    if (signatureKeys.length === 0) return found;
    const { sql } = this.#parts;
    const keys = signatureKeys.map((key) => ({ signature: Buffer.from(key, 'latin1') }));
    const isHidden = ({ signature }: (typeof keys)[number]) => signature.length === HIDDEN_KEY_CHARS;
    const plain = keys.filter((key) => !isHidden(key));
    const values = [
      ...[plain, keys.filter(isHidden)].map((each) => jsonRows(KEY, each)),
      jsonRows(WITHHELD_KEY, plain.map(withHidden)),
    ];
    for (const row of await sql.query<FoundLine>(linesOfSignatures(sql.dialect), values))
      found.set(row.key.toString('latin1'), findDamage(this.damagedStreams, row) ?? row.line.toString());
    return found;
  }

  async writeSnapshot(stream: StreamId, snapshot: Snapshot, withheldThrough: number): Promise<void> {
    const statement = { text: WRITE_SNAPSHOT, values: snapshotValues(stream, snapshot) };
    await this.#parts.writer.change([statement], { withheldThrough }).catch((error: unknown) => {
      if (!(error instanceof Conflict)) throw error;
    });
  }

  /** Does nothing: a line's place is its position, and positions have no gaps and follow the order of the commits. */
  protected async placeLines(): Promise<boolean> {
    return true;
  }

  protected unplaced(): Error {
    return new Error('every line has a place');
  }

  protected readLines<Row extends StoredLine>(
    _order: string,
    text: string,
    values: readonly SqlValue[],
  ): Promise<readonly Row[]> {
    let bytes = 0;
    return this.#parts.sql.rowsUntil<Row>(text, values, ({ line }) => {
      bytes += line.length + 1;
      return bytes >= PAGE_BYTES;
    });
  }

  protected write(text: string, values: readonly SqlValue[]): Promise<unknown> {
    return this.#parts.writer.change([{ text, values }]);
  }
}

interface FoundLine extends StoredLine {
  readonly key: Buffer;
}

function withHidden({ signature }: { readonly signature: Buffer }) {
  return { signature, hidden: Buffer.from(withheldSignature(signature.toString('latin1')), 'latin1') };
}

const KEY: Columns = { signature: 'bytes' };
const WITHHELD_KEY: Columns = { ...KEY, hidden: 'bytes' };

const linesOfSignatures = ({ lines, listed, streamOf }: EventLogParts['sql']['dialect']) => `
SELECT asked.signature AS key, found.stream, found.event_id, found.line, found.line_crc
FROM ${listed('$1', KEY)} AS asked CROSS JOIN ${lines} AS found ON found.signature = asked.signature
UNION ALL SELECT asked.signature, found.stream, found.event_id, found.line, found.line_crc
FROM ${listed('$2', KEY)} AS asked CROSS JOIN registrations ON registrations.signature_hash = asked.signature
  CROSS JOIN ${lines} AS found ON found.stream = registrations.did AND found.event_id = registrations.event_id
UNION ALL SELECT asked.signature, found.stream, found.event_id, found.line, found.line_crc
FROM ${listed('$3', WITHHELD_KEY)} AS asked CROSS JOIN withheld ON withheld.signature = asked.hidden
  CROSS JOIN ${lines} AS found ON found.stream = ${streamOf('withheld.stream')} AND found.event_id = withheld.event_id`;

// What a withholding writes: the stubs in place of their lines, a numbered row for each, and the rows of lists as they follow from the
// stubs. A row keeps the signature that left with its line, hashed: the same request, sent again, still finds its first event.
import { crc32 } from 'node:zlib';
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { listingsOf } from '../../../projections/listings.ts';
import { hiddenSignatureKey } from '../../crypto/http-signature.ts';
import { type ChamberEvent, fromLine } from '../../vocabulary/events.ts';
import type { StreamId } from '../stream-id.ts';
import type { StubLine } from '../withholding.ts';
import { type Dialect, jsonRows, type SqlValue } from './sql.ts';
import { columnsOf, insertListed, LatestRows, rowOf, TABLES, WITHHELD } from './tables.ts';

/** A signatureKey begins with its second, and so does its withheld form: an index of either grows at one end. */
const SECOND_CHARS = 8;

/** The form in which the table `withheld` keeps a signatureKey: text with one byte per character. */
export function withheldSignature(signatureKey: string): string {
  return signatureKey.slice(0, SECOND_CHARS) + hiddenSignatureKey(signatureKey);
}

export interface WithheldLine extends StubLine {
  /** The signature of its request, if the request leaves with the line. */
  readonly signature: Buffer | null;
}

/** Folds a chamber with its stubs; collects the rows that hold texts, as a rebuild would write them. */
export class StubbedRows {
  readonly #rows = new LatestRows();
  #state: ChamberState | null = null;

  /** Called with each event of a chamber, in order. */
  add(line: Buffer): void {
    const after = evolveChamber(this.#state, fromLine(line.toString()) as ChamberEvent);
    for (const listing of listingsOf(this.#state, after)) {
      if (listing.kind === 'chamber' || listing.kind === 'idea') this.#rows.add(TABLES[listing.kind], rowOf(listing));
    }
    this.#state = after;
  }

  get byTable(): ReturnType<LatestRows['byTable']> {
    return this.#rows.byTable();
  }
}

export interface WithheldStream {
  readonly stream: StreamId;
  /** The rows follow from the events up to this one. */
  readonly head: number;
  readonly lines: readonly WithheldLine[];
  readonly rows: StubbedRows['byTable'];
}

/** The lines were read, and the rows folded, while the log had `after` withholdings. */
export interface WithholdPlan {
  readonly after: number;
  readonly streams: readonly WithheldStream[];
}

export interface WithholdStatement {
  readonly text: string;
  readonly values: readonly SqlValue[];
  /** If it changes fewer rows, the log has grown or has other withholdings than the plan: nothing may be written. */
  readonly changesMin?: number;
}

/** Bounds the values of one statement. */
export const ROWS_AT_ONCE = 100;

export function withholdStatements(dialect: Dialect, { after, streams }: WithholdPlan): readonly WithholdStatement[] {
  const statements: WithholdStatement[] = [];
  let last = after;
  for (const { stream, head, lines, rows } of streams) {
    const key = dialect.streamKey(stream);
    for (const some of chunks(lines)) {
      const numbered = some.map(({ eventId, signature }, index) => ({
        ...{ number: last + 1 + index, stream: String(stream), event_id: eventId },
        signature: signature && Buffer.from(withheldSignature(signature.toString('latin1')), 'latin1'),
      }));
      const added = [jsonRows(columnsOf(WITHHELD), numbered), last, key, head];
      statements.push({ text: addNumbers(dialect), values: added, changesMin: some.length });
      for (const { eventId, line, signature } of some) {
        const text = replaceLine(dialect, signature !== null);
        statements.push({ text, values: [line, crc32(line), key, eventId], changesMin: 1 });
      }
      last += some.length;
    }
    statements.push({ text: 'DELETE FROM snapshots WHERE stream = $1', values: [String(stream)] });
    for (const [table, list] of rows) {
      for (const some of chunks(list)) {
        statements.push({ text: insertListed(dialect, table), values: [jsonRows(columnsOf(table), some)] });
      }
    }
  }
  return statements;
}

export function* chunks<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += ROWS_AT_ONCE) yield items.slice(start, start + ROWS_AT_ONCE);
}

function addNumbers({ listed }: Dialect): string {
  const names = WITHHELD.columns.map(({ name }) => name);
  return `INSERT INTO withheld (${names}) SELECT ${names} FROM ${listed('$1', columnsOf(WITHHELD))}
    WHERE (SELECT coalesce(max(number), 0) FROM withheld) = $2 AND (SELECT max(event_id) FROM events WHERE stream = $3) = $4`;
}

/** One line at a time: joined with a list, SQLite would search the list for each event of the stream. */
function replaceLine({ lineOf }: Dialect, isSigned: boolean): string {
  const signature = isSigned ? ', signature = NULL' : '';
  return `UPDATE events SET line = ${lineOf('$1')}, line_crc = $2${signature} WHERE stream = $3 AND event_id = $4`;
}

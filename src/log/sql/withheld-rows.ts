// The statements of a withholding. They replace lines by stubs, add a numbered row for each, and update derived rows as the stubs determine
// them. A numbered row keeps the hashed signature of a request that was removed with its line, so that a retry of the request still finds its
// first event.
import { crc32 } from 'node:zlib';
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { listingsOf } from '../../../projections/listings.ts';
import { hiddenSignatureKey } from '../../crypto/http-signature.ts';
import { type ChamberEvent, fromLine } from '../../vocabulary/events.ts';
import type { StreamId } from '../stream-id.ts';
import type { StubLine } from '../withholding.ts';
import { type Dialect, jsonRows, type SqlValue } from './sql.ts';
import { columnsOf, insertListed, LatestRows, rowOf, TABLES, WITHHELD } from './tables.ts';

/** A signatureKey begins with its second. The withheld form does so too, so that its index grows at one end. */
const SECOND_CHARS = 8;

/** Returns the form in which the table `withheld` stores a signatureKey: text with one byte per character. */
export function withheldSignature(signatureKey: string): string {
  return signatureKey.slice(0, SECOND_CHARS) + hiddenSignatureKey(signatureKey);
}

export interface WithheldLine extends StubLine {
  /** The signature of the request, if the request is removed with the line. */
  readonly signature: Buffer | null;
}

/** Folds a chamber with its stubs, and collects the rows that hold texts, as a rebuild would write them. */
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
  /** The last event that the rows reflect. */
  readonly head: number;
  readonly lines: readonly WithheldLine[];
  readonly rows: StubbedRows['byTable'];
}

/** A plan from lines that were read and folded while the log had `after` withholdings. */
export interface WithholdPlan {
  readonly after: number;
  readonly streams: readonly WithheldStream[];
}

export interface WithholdStatement {
  readonly text: string;
  readonly values: readonly SqlValue[];
  /** If the statement changes fewer rows, the plan no longer matches the log, and nothing may be written. */
  readonly changesMin?: number;
}

/** Limits the rows in one statement. */
export const ROWS_PER_STATEMENT = 100;

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
  for (let start = 0; start < items.length; start += ROWS_PER_STATEMENT)
    yield items.slice(start, start + ROWS_PER_STATEMENT);
}

function addNumbers({ listed }: Dialect): string {
  const names = WITHHELD.columns.map(({ name }) => name);
  return `INSERT INTO withheld (${names}) SELECT ${names} FROM ${listed('$1', columnsOf(WITHHELD))}
    WHERE (SELECT coalesce(max(number), 0) FROM withheld) = $2 AND (SELECT max(event_id) FROM events WHERE stream = $3) = $4`;
}

/** Replaces one line, because SQLite would search a joined list for each event of the stream. */
function replaceLine({ lineOf }: Dialect, isSigned: boolean): string {
  const signature = isSigned ? ', signature = NULL' : '';
  return `UPDATE events SET line = ${lineOf('$1')}, line_crc = $2${signature} WHERE stream = $3 AND event_id = $4`;
}

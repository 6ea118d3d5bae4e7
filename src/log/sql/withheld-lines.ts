// Reads the numbers of withheld lines and the lines of given events, and checks stubs against the lines that they replace.
import { originalProblem } from '../../crypto/stub.ts';
import { type ForumEvent, fromLine, toLine } from '../../vocabulary/events.ts';
import type { Withheld } from '../../vocabulary/withheld.ts';
import type { StubLine } from '../withholding.ts';
import type { StoredLine } from './event-log.ts';
import { type Columns, jsonRows, type Sql } from './sql.ts';

export async function lastNumber({ query }: Pick<Sql, 'query'>): Promise<number> {
  const [row] = await query<{ readonly number: number }>('SELECT coalesce(max(number), 0) AS number FROM withheld');
  return row?.number ?? 0;
}

export interface NumberedLine {
  readonly number: number;
  readonly stream: string;
  readonly event_id: number;
}

export const NUMBERED = 'SELECT number, stream, event_id FROM withheld WHERE number > $1 ORDER BY number LIMIT $2';

interface OriginalLine extends StoredLine {
  readonly signature: Buffer | null;
  /** Null if the line is not withheld. */
  readonly number: number | null;
}

/** Returns the lines by event id. All events must belong to one stream. */
export async function readOriginals(
  sql: Sql,
  asked: readonly Pick<StubLine, 'stream' | 'eventId'>[],
): Promise<ReadonlyMap<number, OriginalLine>> {
  return new Map((await linesOf(sql, asked)).map((line) => [line.event_id, line]));
}

const ASKED: Columns = { asked_stream: 'text', asked_event: 'integer' };

export function linesOf(
  { dialect, query }: Sql,
  asked: readonly Pick<StubLine, 'stream' | 'eventId'>[],
): Promise<readonly OriginalLine[]> {
  const rows = asked.map(({ stream, eventId }) => ({ asked_stream: dialect.streamKey(stream), asked_event: eventId }));
  return query<OriginalLine>(
    `SELECT stream, event_id, line, line_crc, signature, (SELECT number FROM withheld
       WHERE withheld.stream = CAST(asked_stream AS text) AND withheld.event_id = asked_event) AS number
     FROM ${dialect.listed('$1', ASKED)} CROSS JOIN ${dialect.lines} WHERE stream = asked_stream AND event_id = asked_event`,
    [jsonRows(ASKED, rows)],
  );
}

/** Throws an Error unless the stub matches the line. Returns the line's signature if the stub omits the request. */
export function requireStubOf(
  { stream, eventId, line }: StubLine,
  original: Pick<OriginalLine, 'line' | 'signature'>,
): Buffer | null {
  const text = Buffer.from(line).toString();
  const event = fromLine(text);
  const problem =
    isStub(event) && toLine(event) === text ? originalProblem(original.line.toString(), event) : 'it is not a stub';
  if (problem !== undefined) throw new Error(`not the stub of event ${eventId} of ${stream}: ${problem}`);
  return event.request === null ? original.signature : null;
}

function isStub(event: ForumEvent): event is ForumEvent & { readonly withheld: Withheld } {
  return event.withheld !== undefined;
}

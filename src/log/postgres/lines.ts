// Lines and tree nodes as they are stored, each checked against its checksum.
import type { NodeRef } from '../../crypto/merkle.ts';
import { type Damages, isAsWritten, type StoredNodes, type StreamDamaged } from '../damage.ts';
import type { OrderedPage, Page } from '../log.ts';
import { PAGE_BYTES } from '../pages.ts';
import type { StreamId } from '../stream-id.ts';
import { bigintArray } from './arrays.ts';
import type { Query } from './connections.ts';
import { toStream } from './growth.ts';

/** bigint columns are text in JavaScript. */
export interface StoredLine {
  readonly event_id: string;
  readonly line: Buffer;
  readonly line_crc: string;
}

/** The damage, if the line is not as it was written. */
export function damageIn(damages: Damages, stream: StreamId, stored: StoredLine): StreamDamaged | undefined {
  if (isAsWritten(stored.line, stored.line_crc)) return undefined;
  const eventId = Number(stored.event_id);
  return damages.note(stream, eventId, `event ${eventId} is not as it was written`);
}

export interface Reads {
  readonly query: Query;
  readonly damages: Damages;
}

interface PageQuery {
  readonly stream: StreamId;
  readonly after: number;
  readonly limit: number;
}

export async function readPage({ query, damages }: Reads, { stream, after, limit }: PageQuery): Promise<Page> {
  const rows = await query<StoredLine>('page', PAGE, [String(stream), after, limit]);
  for (const [index, { event_id: eventId }] of rows.entries()) {
    const expected = after + index + 1;
    if (Number(eventId) !== expected) throw damages.note(stream, expected, `event ${expected} is missing`);
  }
  return { ndjson: joined(rows, damages, () => stream), count: rows.length };
}

export async function readAll({ query, damages }: Reads, after: number, limit: number): Promise<OrderedPage> {
  const rows = await query<PlacedLine | EndOfPage>('all', ALL_PAGE, [after, limit]);
  const lines = rows.filter((row) => row.stream !== null);
  const ndjson = joined(lines, damages, ({ stream }) => toStream(stream));
  const isCut = lines.length === limit || ndjson.length >= PAGE_BYTES;
  const end = isCut ? lines.at(-1) : rows.find(({ stream }) => stream === null);
  return { ndjson, count: lines.length, last: Number(end?.place ?? after) };
}

/** The last of the places that were passed; null at the end of the order. */
interface EndOfPage {
  readonly stream: null;
  readonly place: string | null;
}

/** Places that one page over all chambers passes at most: those of accounts are skipped. */
const PLACES_PER_PAGE = 4_000;

interface PlacedLine extends StoredLine {
  readonly place: string;
  readonly stream: string;
}

const LINE_BREAK = Buffer.from('\n');

function joined<Row extends StoredLine>(
  rows: readonly Row[],
  damages: Damages,
  streamOf: (row: Row) => StreamId,
): Buffer {
  const parts = rows.flatMap((row) => {
    const damage = damageIn(damages, streamOf(row), row);
    if (damage !== undefined) throw damage;
    return [row.line, LINE_BREAK];
  });
  return Buffer.concat(parts);
}

/** A page ends with the line that fills it. */
const PAGE = `
SELECT event_id, line, line_crc FROM (
  SELECT event_id, line, line_crc, sum(octet_length(line) + 1) OVER (ORDER BY event_id) - octet_length(line) - 1 AS bytes_before
  FROM (SELECT event_id, line, line_crc FROM events WHERE stream = $1 AND event_id > $2 ORDER BY event_id LIMIT $3) AS lines
) AS lines WHERE bytes_before < ${PAGE_BYTES} ORDER BY event_id`;

const ALL_PAGE = `
WITH passed AS MATERIALIZED (SELECT * FROM places WHERE place > $1 ORDER BY place LIMIT ${PLACES_PER_PAGE})
SELECT place, stream, event_id, line, line_crc FROM (
  SELECT *, sum(octet_length(line) + 1) OVER (ORDER BY place) - octet_length(line) - 1 AS bytes_before
  FROM (SELECT * FROM passed WHERE stream ~ '^[0-9]' ORDER BY place LIMIT $2) AS placed JOIN events USING (stream, event_id)
) AS lines WHERE bytes_before < ${PAGE_BYTES}
UNION ALL SELECT max(place), NULL, NULL, NULL, NULL FROM passed
ORDER BY place`;

export async function readNodes(
  { query, damages }: Reads,
  chamberId: number,
  refs: readonly NodeRef[],
): Promise<readonly Uint8Array[]> {
  if (refs.length === 0) return [];
  const rows = await query<StoredNodes & Pick<StoredLine, 'event_id'>>(
    'nodes',
    'SELECT event_id, nodes, nodes_crc FROM events WHERE stream = $1 AND event_id = ANY ($2::bigint[])',
    [String(chamberId), bigintArray(refs.map(({ eventId }) => eventId))],
  );
  const byEvent = new Map(rows.map((row) => [Number(row.event_id), row]));
  return refs.map((ref) => {
    const stored = byEvent.get(ref.eventId);
    if (stored === undefined) throw damages.note(chamberId, ref.eventId, `event ${ref.eventId} is missing`);
    return damages.nodeIn(chamberId, ref, stored);
  });
}

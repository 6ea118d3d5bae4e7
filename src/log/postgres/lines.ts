// Lines and tree nodes as they are stored, each checked against its checksum.
import { crc32 } from 'node:zlib';
import { HASH_BYTES, type NodeRef } from '../../crypto/merkle.ts';
import { type Damages, StreamDamaged } from '../damage.ts';
import type { OrderedPage, Page } from '../log.ts';
import { PAGE_BYTES } from '../pages.ts';
import type { StreamId } from '../stream-id.ts';
import { bigintArray } from './arrays.ts';
import type { Query } from './connections.ts';
import { toStream } from './growth.ts';

interface Sealed {
  readonly bytes: Buffer;
  readonly checksum: string;
}

/** bigint columns are text in JavaScript. */
export interface StoredLine {
  readonly event_id: string;
  readonly line: Buffer;
  readonly line_crc: string;
}

/** The damage, if the bytes are not as they were written. */
export function damageIn(
  damages: Damages,
  stream: StreamId,
  eventId: number,
  { bytes, checksum }: Sealed,
): StreamDamaged | undefined {
  if (Number(checksum) === crc32(bytes)) return undefined;
  return damages.note(new StreamDamaged(stream, eventId, `event ${eventId} is not as it was written`));
}

function missing(damages: Damages, stream: StreamId, eventId: number): StreamDamaged {
  return damages.note(new StreamDamaged(stream, eventId, `event ${eventId} is missing`));
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
    if (Number(eventId) !== expected) throw missing(damages, stream, expected);
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
    const { event_id: eventId, line, line_crc: checksum } = row;
    const damage = damageIn(damages, streamOf(row), Number(eventId), { bytes: line, checksum });
    if (damage !== undefined) throw damage;
    return [line, LINE_BREAK];
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
  const rows = await query<StoredNodes>(
    'nodes',
    'SELECT event_id, nodes, nodes_crc FROM events WHERE stream = $1 AND event_id = ANY ($2::bigint[])',
    [String(chamberId), bigintArray(refs.map(({ eventId }) => eventId))],
  );
  const byEvent = new Map(rows.map((row) => [Number(row.event_id), row]));
  return refs.map(({ eventId, level }) => {
    const stored = byEvent.get(eventId);
    if (stored === undefined) throw missing(damages, chamberId, eventId);
    const { nodes, nodes_crc: checksum } = stored;
    const node = nodes?.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
    if (nodes && Number(checksum) === crc32(nodes) && node?.length === HASH_BYTES) return node;
    const problem = `event ${eventId} has other tree nodes than those written`;
    throw damages.note(new StreamDamaged(chamberId, eventId, problem));
  });
}

interface StoredNodes {
  readonly event_id: string;
  readonly nodes: Buffer | null;
  readonly nodes_crc: string | null;
}

// Pages of lines out of SQLite: joined there, so that a page of history crosses into JavaScript as one buffer.
import type { Database, Statement } from 'better-sqlite3';
import type { EventIndex } from './event-index.ts';
import type { Page, StreamId } from './log.ts';
import { PAGE_BYTES } from './pages.ts';

type Range = [stream: StreamId, after: number, limit: number];

const RANGE = `FROM stream_events AS place CROSS JOIN events ON events.position = place.position
  WHERE place.stream = ? AND place.event_id > ? ORDER BY place.event_id LIMIT ?`;

const NO_LINES: Page = { ndjson: Buffer.alloc(0), count: 0 };

export class PageReader {
  readonly #index: EventIndex;
  readonly #lengths: Statement<Range, number>;
  readonly #lines: Statement<Range, Buffer>;
  readonly #line: Statement<[number], Buffer>;

  constructor(db: Database, index: EventIndex) {
    this.#index = index;
    this.#lengths = db.prepare<Range, number>(`SELECT octet_length(line) ${RANGE}`).pluck();
    this.#lines = db
      .prepare<Range, Buffer>(
        `SELECT CAST(group_concat(line, char(10)) || char(10) AS BLOB) FROM (SELECT line ${RANGE})`,
      )
      .pluck();
    this.#line = db
      .prepare<[number], Buffer>('SELECT CAST(line || char(10) AS BLOB) FROM events WHERE position = ?')
      .pluck();
  }

  read(stream: StreamId, after: number, limit: number): Page {
    const newest = this.#readNewest(stream, after, limit, PAGE_BYTES);
    if (newest.count > 0) return newest;
    const indexed = this.#readIndexed(stream, after, limit);
    const [linesLeft, bytesLeft] = [limit - indexed.count, PAGE_BYTES - indexed.ndjson.length];
    if (linesLeft === 0 || bytesLeft <= 0) return indexed;
    const rest = this.#readNewest(stream, after + indexed.count, linesLeft, bytesLeft);
    if (rest.count === 0) return indexed;
    return { ndjson: Buffer.concat([indexed.ndjson, rest.ndjson]), count: indexed.count + rest.count };
  }

  #readIndexed(stream: StreamId, after: number, limit: number): Page {
    const count = countWithin(PAGE_BYTES, this.#lengths.iterate(stream, after, limit));
    return count === 0 ? NO_LINES : { ndjson: this.#lines.get(stream, after, count) as Buffer, count };
  }

  #readNewest(stream: StreamId, after: number, limit: number, bytesMax: number): Page {
    const lines: Buffer[] = [];
    let bytes = 0;
    for (const position of this.#index.recentPositions(stream, after, limit)) {
      const line = this.#line.get(position) as Buffer;
      lines.push(line);
      bytes += line.length;
      if (bytes >= bytesMax) break;
    }
    return lines.length === 0 ? NO_LINES : { ndjson: Buffer.concat(lines, bytes), count: lines.length };
  }
}

/** How many lines until the bytes are full. */
function countWithin(bytesMax: number, lengths: Iterable<number>): number {
  let bytes = 0;
  let lines = 0;
  for (const length of lengths) {
    lines++;
    bytes += length + 1;
    if (bytes >= bytesMax) break;
  }
  return lines;
}

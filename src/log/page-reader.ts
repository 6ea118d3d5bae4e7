// Pages of lines out of SQLite: joined there, so that a page crosses into JavaScript as one buffer.
import type { Database, Statement } from 'better-sqlite3';
import type { Page, StreamId } from './log.ts';
import { PAGE_BYTES } from './pages.ts';

type Range = [stream: StreamId, after: number, limit: number];

interface Statements {
  readonly lengths: Statement<Range, number>;
  readonly lines: Statement<Range, Buffer>;
}

export class PageReader {
  readonly #ofChamber: Statements;
  readonly #ofAccount: Statements;

  constructor(db: Database) {
    this.#ofChamber = prepare(db, 'chamber_id');
    this.#ofAccount = prepare(db, 'account');
  }

  read(stream: StreamId, after: number, limit: number): Page {
    const { lengths, lines } = typeof stream === 'number' ? this.#ofChamber : this.#ofAccount;
    const count = countWithin(PAGE_BYTES, lengths.iterate(stream, after, limit));
    const ndjson = count === 0 ? Buffer.alloc(0) : (lines.get(stream, after, count) as Buffer);
    return { ndjson, count };
  }
}

function prepare(db: Database, column: 'chamber_id' | 'account'): Statements {
  const range = `FROM events WHERE ${column} = ? AND event_id > ? ORDER BY event_id LIMIT ?`;
  const joined = `SELECT CAST(group_concat(line, char(10)) || char(10) AS BLOB) FROM (SELECT line ${range})`;
  return {
    lengths: db.prepare<Range, number>(`SELECT octet_length(line) ${range}`).pluck(),
    lines: db.prepare<Range, Buffer>(joined).pluck(),
  };
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

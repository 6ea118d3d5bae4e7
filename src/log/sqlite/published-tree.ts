// The published tree in an SQLite file. A line's place is its position: positions have no gaps and are those of the commits.
import type Database from 'better-sqlite3';
import type { ReadTiles } from '../../tlog/tiled-tree.ts';
import type { Damages } from '../damage.ts';
import {
  leafOf,
  type PlacedEvent,
  type Publication,
  type PublishedTree,
  type StoredCheckpoint,
  type StoredLeaf,
  storedLevel,
} from '../published-tree.ts';
import type { Access } from './access.ts';

interface Parts {
  readonly logId: string;
  readonly access: Access;
  readonly damages: Damages;
}

export class SqlitePublishedTree implements PublishedTree {
  readonly #parts: Parts;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #write: (publication: Publication) => boolean;

  constructor(parts: Parts) {
    const { db } = parts.access.file;
    this.#parts = parts;
    this.#statements = prepare(db);
    this.#write = db.transaction(this.#writeAll.bind(this)).immediate;
  }

  pinned<Result>(work: (tree: PublishedTree) => Promise<Result>): Promise<Result> {
    return work(this);
  }

  checkpoint(logId = this.#parts.logId): Promise<StoredCheckpoint | undefined> {
    return this.#parts.access.read(() => this.#statements.checkpoint.get(logId));
  }

  async confirm(): Promise<void> {}

  readonly readTiles: ReadTiles = (refs) =>
    this.#parts.access.read(() => refs.map((ref) => this.#statements.tile.get(storedLevel(ref), ref.index)));

  readLeaves(after: number, limit: number): Promise<Uint8Array> {
    const { access, damages } = this.#parts;
    return access.read(() => {
      const rows = this.#statements.leaves.all(after, after + limit);
      return Buffer.concat(rows.map((row) => leafOf(damages, row, row)));
    });
  }

  readEvents(after: number, limit: number): Promise<readonly PlacedEvent[]> {
    return this.#parts.access.read(() => this.#statements.events.all(after, after + limit));
  }

  publish(publication: Publication): Promise<boolean> {
    return this.#parts.access.change(() => this.#write(publication));
  }

  #writeAll({ from, checkpoint, tiles }: Publication): boolean {
    const { logId } = this.#parts;
    if ((this.#statements.checkpoint.get(logId)?.size ?? 0) !== from) return false;
    for (const tile of tiles) this.#statements.writeTile.run(storedLevel(tile), tile.index, tile.bytes);
    this.#statements.writeCheckpoint.run(logId, checkpoint.size, checkpoint.note);
    return true;
  }

  replaceNote(from: StoredCheckpoint, note: string): Promise<boolean> {
    const { access, logId } = this.#parts;
    return access.change(() => this.#statements.replaceNote.run(note, logId, from.size, from.note).changes > 0);
  }
}

type LeafRow = PlacedEvent & StoredLeaf;

type Span = [after: number, through: number];

const STREAM = 'coalesce(chamber_id, account) AS stream';

function prepare(db: Database.Database) {
  return {
    checkpoint: db.prepare<[string], StoredCheckpoint>('SELECT size, note FROM checkpoints WHERE log_id = ?'),
    tile: db.prepare<[number, number], Buffer>('SELECT hashes FROM tiles WHERE level = ? AND tile = ?').pluck(),
    leaves: db.prepare<Span, LeafRow>(
      `SELECT ${STREAM}, event_id AS eventId, nodes, nodes_crc, line_crc, iif(nodes IS NULL, CAST(line AS BLOB), NULL) AS line
       FROM events WHERE position > ? AND position <= ? ORDER BY position`,
    ),
    events: db.prepare<Span, PlacedEvent>(
      `SELECT ${STREAM}, event_id AS eventId FROM events WHERE position > ? AND position <= ? ORDER BY position`,
    ),
    writeTile: db.prepare('INSERT OR REPLACE INTO tiles VALUES (?, ?, ?)'),
    writeCheckpoint: db.prepare('INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)'),
    replaceNote: db.prepare('UPDATE checkpoints SET note = ? WHERE log_id = ? AND size = ? AND note = ?'),
  };
}

// The latest snapshot of each stream. One that does not fit is dropped, and the stream is folded from its first event.
import { createHash } from 'node:crypto';
import type { Database, Statement } from 'better-sqlite3';
import { STATE_VERSION } from '../../../projections/snapshot.ts';
import type { Snapshot } from '../log.ts';
import type { StreamId } from '../stream-id.ts';

export interface SnapshotRow {
  readonly stream: StreamId;
  readonly event_id: number;
  readonly version: number;
  readonly leaf: Buffer;
  readonly state: string;
  readonly checksum: Buffer;
}

export class Snapshots {
  readonly #write: Statement<[SnapshotRow]>;
  readonly #read: Statement<[StreamId], SnapshotRow>;
  readonly #drop: Statement<[StreamId]>;

  constructor(db: Database) {
    this.#write = db.prepare(
      `INSERT INTO snapshots VALUES (@stream, @event_id, @version, @leaf, @state, @checksum)
       ON CONFLICT DO UPDATE SET event_id = @event_id, version = @version, leaf = @leaf, state = @state, checksum = @checksum
         WHERE event_id <= @event_id`,
    );
    this.#read = db.prepare('SELECT * FROM snapshots WHERE stream = ?');
    this.#drop = db.prepare('DELETE FROM snapshots WHERE stream = ?');
  }

  write(stream: StreamId, { eventId, leaf, state }: Snapshot): void {
    const row = { stream, event_id: eventId, version: STATE_VERSION, leaf: Buffer.from(leaf), state };
    this.#write.run({ ...row, checksum: checksumOf(row) });
  }

  /** Drops one that is of another version or damaged. */
  read(stream: StreamId): Snapshot | undefined {
    const row = this.#read.get(stream);
    if (row === undefined) return undefined;
    if (row.version !== STATE_VERSION || !row.checksum.equals(checksumOf(row))) {
      this.drop(stream);
      return undefined;
    }
    return { eventId: row.event_id, leaf: row.leaf, state: row.state };
  }

  drop(stream: StreamId): void {
    this.#drop.run(stream);
  }
}

export function checksumOf({ stream, event_id, version, leaf, state }: Omit<SnapshotRow, 'checksum'>): Buffer {
  return createHash('sha256').update(`${stream}:${event_id}:${version}:`).update(leaf).update(state).digest();
}

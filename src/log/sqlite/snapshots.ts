// The latest snapshot of each chamber. One that does not fit is dropped, and the chamber is folded from its first event.
import { createHash } from 'node:crypto';
import type { Database, Statement } from 'better-sqlite3';
import { STATE_VERSION } from '../../../projections/snapshot.ts';
import type { Snapshot } from '../log.ts';

export interface SnapshotRow {
  readonly chamber_id: number;
  readonly event_id: number;
  readonly version: number;
  readonly leaf: Buffer;
  readonly state: string;
  readonly checksum: Buffer;
}

export class Snapshots {
  readonly #write: Statement<[SnapshotRow]>;
  readonly #read: Statement<[number], SnapshotRow>;
  readonly #drop: Statement<[number]>;

  constructor(db: Database) {
    this.#write = db.prepare(
      `INSERT INTO snapshots VALUES (@chamber_id, @event_id, @version, @leaf, @state, @checksum)
       ON CONFLICT DO UPDATE SET event_id = @event_id, version = @version, leaf = @leaf, state = @state, checksum = @checksum
         WHERE event_id <= @event_id`,
    );
    this.#read = db.prepare('SELECT * FROM snapshots WHERE chamber_id = ?');
    this.#drop = db.prepare('DELETE FROM snapshots WHERE chamber_id = ?');
  }

  write(chamberId: number, { eventId, leaf, state }: Snapshot): void {
    const row = { chamber_id: chamberId, event_id: eventId, version: STATE_VERSION, leaf: Buffer.from(leaf), state };
    this.#write.run({ ...row, checksum: checksumOf(row) });
  }

  /** Drops one that is of another version or damaged. */
  read(chamberId: number): Snapshot | undefined {
    const row = this.#read.get(chamberId);
    if (row === undefined) return undefined;
    if (row.version !== STATE_VERSION || !row.checksum.equals(checksumOf(row))) {
      this.drop(chamberId);
      return undefined;
    }
    return { eventId: row.event_id, leaf: row.leaf, state: row.state };
  }

  drop(chamberId: number): void {
    this.#drop.run(chamberId);
  }
}

export function checksumOf({ chamber_id, event_id, version, leaf, state }: Omit<SnapshotRow, 'checksum'>): Buffer {
  return createHash('sha256').update(`${chamber_id}:${event_id}:${version}:`).update(leaf).update(state).digest();
}

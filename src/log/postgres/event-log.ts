// The event log in PostgreSQL, which any number of nodes append to. An append that resolved is on disk, and on the synchronous
// standbys if there are any. append.ts says why nodes don't need to know of each other.
import { crc32 } from 'node:zlib';
import { STATE_VERSION } from '../../../projections/snapshot.ts';
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import type { NodeRef } from '../../crypto/merkle.ts';
import type { Damages } from '../damage.ts';
import {
  ALL_CHAMBERS,
  type AppendBatch,
  type AppendResult,
  type EventLog,
  type OrderedPage,
  type Page,
  type Snapshot,
} from '../log.ts';
import { ReadTurns } from '../read-turns.ts';
import { SignatureFilter } from '../signature-filter.ts';
import type { StreamId } from '../stream-id.ts';
import { Appender } from './append.ts';
import type { Connections, Query } from './connections.ts';
import type { DatabaseClock } from './database-clock.ts';
import { logUnavailable } from './database-errors.ts';
import { type Reads, readAll, readNodes, readPage } from './lines.ts';
import { lookUp } from './look-up.ts';
import type { PostgresNodes } from './nodes.ts';
import { placeLines } from './order.ts';
import type { Writes } from './writes.ts';

interface Parts {
  readonly connections: Connections;
  /** For what commits beside the appends: it may wait for a standby, and no read waits with it. */
  readonly commits: Connections;
  readonly writes: Writes;
  readonly damages: Damages;
  readonly nodes: PostgresNodes;
  /** The lowest id of a new chamber. */
  readonly chamberIdMin: number;
  readonly clock: DatabaseClock;
}

export class PostgresEventLog implements EventLog {
  readonly turns = new ReadTurns();
  readonly logId: string;
  readonly damages: Damages;
  readonly #parts: Parts;
  readonly #query: Query;
  readonly #reads: Reads;
  readonly #appender: Appender;
  /** The signatures that this process has seen in the log. */
  readonly #seen = new SignatureFilter(0);

  constructor(logId: string, parts: Parts) {
    this.logId = logId;
    this.damages = parts.damages;
    this.#parts = parts;
    this.#query = parts.connections.query;
    this.#reads = { query: this.#query, damages: parts.damages };
    this.#appender = new Appender({ logId, ...parts });
  }

  async append(batch: AppendBatch): Promise<AppendResult> {
    const { writes, nodes } = this.#parts;
    const append = this.#appender.begin(batch);
    const isWrite = batch.entries.length + (batch.registrations?.length ?? 0) > 0;
    const appending = isWrite ? writes.run(append) : writes.connections.run((client) => append(client));
    const result = await appending.catch((error: unknown) => {
      nodes.giveUp(batch.entries);
      throw error;
    });
    const { moved, found } = result;
    const written = moved.size === 0 ? batch.entries : batch.entries.filter(({ stream }) => !moved.has(stream));
    for (const { signature } of written) if (signature !== null) this.#seen.add(signature);
    this.#noteFound(found);
    if (written.length > 0) nodes.announce(written);
    return result;
  }

  #noteFound(found: AppendResult['found']): void {
    for (const signature of found.keys()) if (signature.length !== HIDDEN_KEY_CHARS) this.#seen.add(signature);
  }

  async find(signatureKeys: readonly string[]): Promise<AppendResult['found']> {
    const { commits } = this.#parts;
    const asked = { streams: [], signatureKeys };
    const { found } = await commits.run((client) => lookUp(client, asked, this.damages));
    this.#noteFound(found);
    return found;
  }

  mayHold(signatureKey: string): boolean {
    return signatureKey.length === HIDDEN_KEY_CHARS || this.#seen.mayHold(signatureKey);
  }

  readPage(stream: StreamId, after: number, limit: number): Promise<Page> {
    return readPage(this.#reads, { stream, after, limit });
  }

  async lastEventId(stream: StreamId): Promise<number> {
    const [row] = await (stream === ALL_CHAMBERS
      ? this.#query<HeadRow>('last chamber', 'SELECT max(chamber_id) AS head FROM chambers', [])
      : this.#query<HeadRow>('head', 'SELECT max(event_id) AS head FROM events WHERE stream = $1', [String(stream)]));
    const head = Number(row?.head ?? 0);
    return stream === ALL_CHAMBERS ? Math.max(head, this.#parts.chamberIdMin - 1) : head;
  }

  async readAll(after: number, limit: number): Promise<OrderedPage> {
    await placeLines(this.#parts.commits, this.#parts.connections);
    return readAll(this.#reads, after, limit);
  }

  async lastPlace(): Promise<number> {
    await placeLines(this.#parts.commits, this.#parts.connections);
    const [row] = await this.#query<PlaceRow>('last place', LAST_PLACE, []);
    return Number(row?.place);
  }

  async placeOf(stream: StreamId, eventId: number): Promise<number | undefined> {
    const isComplete = await placeLines(this.#parts.commits, this.#parts.connections);
    const [row] = await this.#query<PlaceRow>('place of', PLACE_OF, [String(stream), eventId]);
    if (row === undefined && !isComplete) throw logUnavailable();
    return row && Number(row.place);
  }

  async readSnapshot(stream: StreamId): Promise<Snapshot | undefined> {
    const [row] = await this.#query<SnapshotRow>('snapshot', 'SELECT * FROM snapshots WHERE stream = $1', [stream]);
    const isWhole = row && Number(row.version) === STATE_VERSION && Number(row.crc) === crc32(row.state);
    return isWhole ? { eventId: Number(row.event_id), leaf: row.leaf, state: row.state } : undefined;
  }

  async writeSnapshot(stream: StreamId, { eventId, leaf, state }: Snapshot): Promise<void> {
    await this.#parts.commits.query(
      'write snapshot',
      `INSERT INTO snapshots VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (stream) DO UPDATE SET event_id = excluded.event_id, version = excluded.version, leaf = excluded.leaf,
         state = excluded.state, crc = excluded.crc WHERE snapshots.event_id <= excluded.event_id`,
      [stream, eventId, STATE_VERSION, Buffer.from(leaf), state, crc32(state)],
    );
  }

  async dropSnapshot(stream: StreamId): Promise<void> {
    await this.#parts.commits.query('drop snapshot', 'DELETE FROM snapshots WHERE stream = $1', [stream]);
  }

  readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]> {
    return readNodes(this.#reads, chamberId, refs);
  }
}

interface HeadRow {
  readonly head: string | null;
}

interface PlaceRow {
  readonly place: string;
}

interface SnapshotRow {
  readonly event_id: string;
  readonly version: string;
  readonly leaf: Buffer;
  readonly state: string;
  readonly crc: string;
}

const LAST_PLACE = 'SELECT coalesce(max(place), 0) AS place FROM places';
const PLACE_OF = 'SELECT place FROM places WHERE stream = $1 AND event_id = $2';

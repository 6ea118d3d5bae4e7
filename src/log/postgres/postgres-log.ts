// The log in PostgreSQL, which any number of nodes append to. An append that resolved is on disk, and on the synchronous
// standbys if there are any. append.ts says why nodes don't need to know of each other.
import { crc32 } from 'node:zlib';
import type { Client } from 'pg';
import { STATE_VERSION } from '../../../projections/snapshot.ts';
import type { NodeRef } from '../../crypto/merkle.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type {
  ChamberListQuery,
  Follower,
  ForumLog,
  GraduatedQuery,
  Lease,
  LogEntry,
  LookUp,
  NodeState,
  OrderedPage,
  Page,
  Registration,
  Seat,
  Snapshot,
  StreamDamaged,
  StreamId,
} from '../log.ts';
import { MOVED_TO, requireNotMoved } from '../moved.ts';
import { Appender } from './append.ts';
import { Connections } from './connections.ts';
import { DatabaseClock } from './database-clock.ts';
import { describeDatabase } from './database-url.ts';
import { Growth } from './growth.ts';
import { PostgresLease } from './lease.ts';
import { Damages, type Reads, readAll, readNodes, readPage } from './lines.ts';
import * as lists from './listings.ts';
import { lookUp } from './look-up.ts';
import { placeLines } from './order.ts';
import { CLOCK_HIGH_WATER_MARK, migrate, probe } from './schema.ts';

export interface PostgresLogOptions {
  /** `postgres://…`, with several hosts separated by commas. */
  readonly url: string;
  /** Beside three for moves and wake-ups. */
  readonly connectionsMax: number;
  /** Called once for each stream in which damage is met. */
  readonly onDamage?: (damage: StreamDamaged) => void;
  /** Called when the database's clock has moved against this machine's. */
  readonly onDrift?: (driftMillis: Millis) => void;
}

/** Opens the log, and creates or migrates its schema. Throws an Error of one line, without the password. */
export async function openPostgresLog(options: PostgresLogOptions): Promise<PostgresLog> {
  const connections = new Connections(options.url, options.connectionsMax);
  return withDatabase(connections, options.url, async (client) => {
    await migrate(client);
    const { rows } = await client.query<MetaRow>('SELECT name, value FROM meta');
    const meta = new Map(rows.map(({ name, value }) => [name, value]));
    requireNotMoved(meta.get(MOVED_TO));
    const clock = Number(meta.get(CLOCK_HIGH_WATER_MARK) ?? 0);
    // Only the newest rows: the index skips what lies before the clock.
    const newest = await client.query<{ readonly at: string | null }>(
      'SELECT max(at) AS at FROM events WHERE at > $1',
      [clock],
    );
    const lastAt = Math.max(clock, Number(newest.rows[0]?.at ?? 0));
    const log = new PostgresLog(connections, options, { logId: meta.get('log_id') ?? '', lastAt });
    await log.clock.start();
    return log;
  });
}

/** What the database is, without a change to it; throws as openPostgresLog does. */
export async function probeDatabase(url: string): Promise<string> {
  const connections = new Connections(url, 1);
  const found = await withDatabase(connections, url, probe);
  await connections.close();
  return `${describeDatabase(url)} is ${found} and takes writes`;
}

async function withDatabase<Result>(
  connections: Connections,
  url: string,
  use: (client: Client) => Promise<Result>,
): Promise<Result> {
  try {
    const client = await connections.connect();
    const result = await use(client);
    await client.end();
    return result;
  } catch (error) {
    await connections.close();
    const reason = error instanceof Error ? error.message || (error as NodeJS.ErrnoException).code : String(error);
    throw new Error(`cannot open the database ${describeDatabase(url)}: ${reason}`, { cause: error });
  }
}

interface MetaRow {
  readonly name: string;
  readonly value: string;
}

class PostgresLog implements ForumLog {
  readonly logId: string;
  readonly isShared = true;
  readonly clock: DatabaseClock;
  readonly #connections: Connections;
  /**
   * For look-ups and appends, one after another. To plan them anew for each batch would cost more than to run them; the plans
   * of lists depend on their parameters.
   */
  readonly #batches: Connections;
  readonly #appender = new Appender();
  readonly #growth: Growth;
  readonly #leases: PostgresLease[] = [];
  readonly #damages: Damages;
  readonly #reads: Reads;
  #lastAt: Millis;
  #writeFailure: ForumError | undefined;

  constructor(
    connections: Connections,
    options: PostgresLogOptions,
    { logId, lastAt }: { readonly logId: string; readonly lastAt: Millis },
  ) {
    this.logId = logId;
    this.#lastAt = lastAt;
    this.#connections = connections;
    this.#batches = new Connections(options.url, 1, { planCacheMode: 'force_generic_plan' });
    this.clock = new DatabaseClock({ run: (work) => connections.run(work), onDrift: options.onDrift });
    this.#damages = new Damages(options.onDamage);
    this.#reads = { query: this.#query, damages: this.#damages };
    this.#growth = new Growth({
      connect: () => connections.connect(),
      channel: `chambers_${logId}`,
      // Beside the moves, which it must not hold up.
      heads: async (streams) => {
        const asked = { streams, signatureKeys: [] };
        return (await connections.run((client) => lookUp(client, asked, this.#damages))).lastEventIds;
      },
    });
  }

  get lastAt(): Millis {
    return this.#lastAt;
  }

  get writeFailure(): ForumError | undefined {
    return this.#writeFailure;
  }

  get damagedStreams(): number {
    return this.#damages.size;
  }

  async append(
    entries: readonly LogEntry[],
    registrations: readonly Registration[] = [],
  ): Promise<ReadonlySet<StreamId>> {
    const conflicts = await this.#write(this.#batches, (client, isRepeated) =>
      this.#appender.append(client, { entries, registrations }, isRepeated),
    ).catch((error: unknown) => {
      for (const { lease: token } of entries) {
        if (token !== undefined) for (const lease of this.#leases) lease.giveUp(token);
      }
      throw error;
    });
    const written = entries.filter(({ stream }) => !conflicts.has(stream));
    // Accounts too whose chambers these are.
    const members = written.flatMap(({ listings }) =>
      listings.flatMap((row) => (row.table === 'members' ? row.did : [])),
    );
    this.#growth.announce([...written.map(({ stream }) => stream), ...members]);
    return conflicts;
  }

  onGrowth(follower: Follower): void {
    this.#growth.follow(follower);
  }

  lookUp(streams: readonly StreamId[], signatureKeys: readonly string[]): Promise<LookUp> {
    return this.#batches.run((client) => lookUp(client, { streams, signatureKeys }, this.#damages));
  }

  readPage(stream: StreamId, after: number, limit: number): Promise<Page> {
    return readPage(this.#reads, { stream, after, limit });
  }

  async lastEventId(stream: StreamId): Promise<number> {
    const [row] = await this.#query<{ readonly head: string | null }>(
      'head',
      'SELECT max(event_id) AS head FROM events WHERE stream = $1',
      [String(stream)],
    );
    return Number(row?.head ?? 0);
  }

  async readAll(after: number, limit: number): Promise<OrderedPage> {
    await this.#placeLines();
    return readAll(this.#reads, after, limit);
  }

  async lastPlace(): Promise<number> {
    await this.#placeLines();
    const [row] = await this.#query<PlaceRow>('last place', LAST_PLACE, []);
    return Number(row?.place);
  }

  async placeOf(chamberId: number, eventId: number): Promise<number | undefined> {
    await this.#placeLines();
    const [row] = await this.#query<PlaceRow>('place of', PLACE_OF, [String(chamberId), eventId]);
    return row && Number(row.place);
  }

  #placeLines(): Promise<void> {
    return placeLines(this.#query, (work) => this.#connections.run(work));
  }

  damageOf(stream: StreamId): StreamDamaged | undefined {
    return this.#damages.of(stream);
  }

  noteDamage(damage: StreamDamaged): StreamDamaged {
    return this.#damages.note(damage);
  }

  async readSnapshot(stream: StreamId): Promise<Snapshot | undefined> {
    const [row] = await this.#query<SnapshotRow>('snapshot', 'SELECT * FROM snapshots WHERE stream = $1', [stream]);
    const isWhole = row && Number(row.version) === STATE_VERSION && Number(row.crc) === crc32(row.state);
    return isWhole ? { eventId: Number(row.event_id), leaf: row.leaf, state: row.state } : undefined;
  }

  async writeSnapshot(stream: StreamId, { eventId, leaf, state }: Snapshot): Promise<void> {
    await this.#query(
      'write snapshot',
      `INSERT INTO snapshots VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (stream) DO UPDATE SET event_id = excluded.event_id, version = excluded.version, leaf = excluded.leaf,
         state = excluded.state, crc = excluded.crc WHERE snapshots.event_id <= excluded.event_id`,
      [stream, eventId, STATE_VERSION, Buffer.from(leaf), state, crc32(state)],
    );
  }

  async dropSnapshot(stream: StreamId): Promise<void> {
    await this.#query('drop snapshot', 'DELETE FROM snapshots WHERE stream = $1', [stream]);
  }

  readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]> {
    return readNodes(this.#reads, chamberId, refs);
  }

  async operatorEmail(did: string): Promise<string | undefined> {
    const [row] = await this.#query<{ readonly operator_email: Buffer }>(
      'contact',
      'SELECT operator_email FROM contacts WHERE did = $1',
      [did],
    );
    return row?.operator_email.toString();
  }

  listChambers(query: ChamberListQuery) {
    return lists.listChambers(this.#query, query);
  }

  listGraduatedIdeas(query: GraduatedQuery) {
    return lists.listGraduatedIdeas(this.#query, query);
  }

  findIdea(ticker: string, chamberId: number | undefined) {
    return lists.findIdea(this.#query, ticker, chamberId);
  }

  listUnsettled(now: Millis, limit: number) {
    return lists.listUnsettled(this.#query, now, limit);
  }

  listSettled(limit: number) {
    return lists.listSettled(this.#query, limit);
  }

  listMemberships(did: string, limit: number) {
    return lists.listMemberships(this.#query, did, limit);
  }

  listChambersOf(did: string, query: Pick<ChamberListQuery, 'before' | 'limit'>) {
    return lists.listChambersOf(this.#query, did, query);
  }

  listMembersAt(seats: readonly Seat[]) {
    return lists.listMembersAt(this.#query, seats);
  }

  agentRecord(did: string) {
    return lists.agentRecord(this.#query, did);
  }

  countOpenChambers(creatorDid: string, max: number) {
    return lists.countOpenChambers(this.#query, creatorDid, max);
  }

  lease(name: string): Lease {
    const lease = new PostgresLease(name, this.#query);
    this.#leases.push(lease);
    return lease;
  }

  nodeState(): NodeState {
    const { isListening, reconnects } = this.#growth;
    const pools = [this.#connections, this.#batches];
    const total = (of: 'inUse' | 'awaited') => pools.reduce((sum, pool) => sum + pool[of], 0);
    return { isListening, reconnects, connectionsInUse: total('inUse'), connectionsAwaited: total('awaited') };
  }

  async recall(name: string): Promise<string | undefined> {
    const [row] = await this.#query<{ readonly value: string }>('recall', 'SELECT value FROM meta WHERE name = $1', [
      name,
    ]);
    return row?.value;
  }

  async remember(name: string, value: string): Promise<void> {
    await this.#query('remember', 'INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING', [name, value]);
  }

  async persistClock(at: Millis): Promise<void> {
    await this.#write(this.#connections, (client) =>
      client.query({
        name: 'persist clock',
        text: `INSERT INTO meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE
          SET value = greatest(meta.value::bigint, excluded.value::bigint)::text`,
        values: [CLOCK_HIGH_WATER_MARK, String(at)],
      }),
    );
    this.#lastAt = Math.max(this.#lastAt, at);
  }

  async close(): Promise<void> {
    this.clock.close();
    this.#growth.close();
    for (const lease of this.#leases) lease.stop();
    await Promise.all([this.#connections.close(), this.#batches.close()]);
  }

  readonly #query: lists.Query = async (name, text, values) => {
    const { rows } = await this.#connections.run((client) => client.query({ name, text, values: [...values] }));
    return rows;
  };

  async #write<Result>(
    connections: Connections,
    work: (client: Client, isRepeated: boolean) => Promise<Result>,
  ): Promise<Result> {
    try {
      const result = await connections.run(work);
      this.#writeFailure = undefined;
      return result;
    } catch (error) {
      if (error instanceof ForumError) this.#writeFailure = error;
      throw error;
    }
  }
}

export type { PostgresLog };

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

// The nodes on one database: leases, wake-ups, and a node's state for its metrics.
import { repeat } from '../../process/detach.ts';
import type { LogEntry } from '../log.ts';
import type { PublishedTree } from '../published-tree.ts';
import type { Follower, Lease, NodeCoordination, NodeState } from '../store.ts';
import type { StreamId } from '../stream-id.ts';
import type { Connections } from './connections.ts';
import { Growth } from './growth.ts';
import { PostgresLease } from './lease.ts';

type ConnectionCheck = (tree: PublishedTree) => Promise<void>;

interface Parts {
  readonly checkConnections: (check: ConnectionCheck) => void;
  readonly logId: string;
  readonly connections: Connections;
  /** For claims. */
  readonly leases: Connections;
  /** All that this process has. */
  readonly pools: readonly Connections[];
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
  readonly onWithheld: () => void;
}

const STANDBY_INTERVAL_MS = 10_000;

/**
 * Whether a standby is attached that no commit waits for: once promoted, it may lack answered moves. Copies of pg_basebackup and
 * pg_receivewal are never promoted.
 */
const ASYNCHRONOUS = `
SELECT current_setting('synchronous_standby_names') = '' AND EXISTS (
  SELECT FROM pg_stat_replication
  WHERE state IS DISTINCT FROM 'backup' AND application_name NOT IN ('pg_basebackup', 'pg_receivewal')
) AS is_asynchronous`;

export class PostgresNodes implements NodeCoordination {
  readonly #parts: Parts;
  readonly #growth: Growth;
  readonly #leases: PostgresLease[] = [];
  readonly #stopStandbyWatch: () => void;
  #isStandbyAsynchronous = false;

  constructor(parts: Parts) {
    const { logId, connections, heads, onWithheld } = parts;
    this.#parts = parts;
    const channel = `chambers_${logId}`;
    this.#growth = new Growth({ connect: () => connections.connect(), channel, heads, onWithheld });
    this.#stopStandbyWatch = repeat(() => this.#watchStandby(), STANDBY_INTERVAL_MS);
  }

  async #watchStandby(): Promise<void> {
    // The loss of the server shows elsewhere.
    const rows = await this.#parts.connections
      .query<{ readonly is_asynchronous: boolean }>(ASYNCHRONOUS)
      .catch(() => undefined);
    if (rows !== undefined) this.#isStandbyAsynchronous = rows[0]?.is_asynchronous === true;
  }

  checkConnections(check: ConnectionCheck): void {
    this.#parts.checkConnections(check);
  }

  lease(name: string): Lease {
    const lease = new PostgresLease(name, this.#parts.leases.query);
    this.#leases.push(lease);
    return lease;
  }

  onGrowth(follower: Follower): void {
    this.#growth.follow(follower);
  }

  state(): NodeState {
    const { isListening, reconnects } = this.#growth;
    const total = (of: 'inUse' | 'awaited') => this.#parts.pools.reduce((sum, pool) => sum + pool[of], 0);
    return {
      isListening,
      reconnects,
      connectionsInUse: total('inUse'),
      connectionsAwaited: total('awaited'),
      isStandbyAsynchronous: this.#isStandbyAsynchronous,
    };
  }

  /** Wakes the other nodes' followers of the streams, and of the agents whose chambers these are. */
  announce(written: readonly LogEntry[]): void {
    const members = written.flatMap(({ listings }) =>
      listings.flatMap((row) => (row.kind === 'member' ? row.did : [])),
    );
    this.#growth.announce([...written.map(({ stream }) => stream), ...members]);
  }

  announceWithheld(): void {
    this.#growth.announceWithheld();
  }

  /** The entries may or may not be written: the leases under which they were decided end. */
  giveUp(entries: readonly LogEntry[]): void {
    for (const { lease: token } of entries) {
      if (token !== undefined) for (const lease of this.#leases) lease.giveUp(token);
    }
  }

  close(): void {
    this.#growth.close();
    this.#stopStandbyWatch();
    for (const lease of this.#leases) lease.stop();
  }
}

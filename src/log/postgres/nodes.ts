// Coordination of the nodes on one database: leases, wake-ups, and a node's metrics.
import { repeat } from '../../process/detach.ts';
import type { LogEntry } from '../log.ts';
import type { PublishedTree } from '../published-tree.ts';
import type { Follower, Lease, NodeCoordination, NodeState } from '../store.ts';
import type { StreamId } from '../stream-id.ts';
import type { Connections } from './connections.ts';
import { PostgresLease } from './lease.ts';
import { NotificationChannel } from './listen-notify.ts';

type ConnectionCheck = (tree: PublishedTree) => Promise<void>;

interface Parts {
  readonly checkConnections: (check: ConnectionCheck) => void;
  readonly logId: string;
  readonly connections: Connections;
  /** The connections for claims of leases. */
  readonly leases: Connections;
  /** All pools of this process. */
  readonly pools: readonly Connections[];
  readonly heads: (streams: readonly StreamId[]) => Promise<ReadonlyMap<StreamId, number>>;
  readonly onWithheld: () => void;
}

const STANDBY_INTERVAL_MS = 10_000;

/**
 * Whether a standby is attached for which no commit waits. If it is promoted, it may lack acknowledged moves. Copies made by pg_basebackup
 * and pg_receivewal are never promoted.
 */
const ASYNCHRONOUS = `
SELECT current_setting('synchronous_standby_names') = '' AND EXISTS (
  SELECT FROM pg_stat_replication
  WHERE state IS DISTINCT FROM 'backup' AND application_name NOT IN ('pg_basebackup', 'pg_receivewal')
) AS is_asynchronous`;

export class PostgresNodes implements NodeCoordination {
  readonly #parts: Parts;
  readonly #notifications: NotificationChannel;
  readonly #leases: PostgresLease[] = [];
  readonly #stopStandbyWatch: () => void;
  #isStandbyAsynchronous = false;

  constructor(parts: Parts) {
    const { logId, connections, heads, onWithheld } = parts;
    this.#parts = parts;
    const channel = `chambers_${logId}`;
    this.#notifications = new NotificationChannel({ connect: () => connections.connect(), channel, heads, onWithheld });
    this.#stopStandbyWatch = repeat(() => this.#watchStandby(), STANDBY_INTERVAL_MS);
  }

  async #watchStandby(): Promise<void> {
    // The loss of the server is reported elsewhere.
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
    this.#notifications.follow(follower);
  }

  state(): NodeState {
    const { isListening, reconnects } = this.#notifications;
    const total = (of: 'inUse' | 'awaited') => this.#parts.pools.reduce((sum, pool) => sum + pool[of], 0);
    return {
      isListening,
      reconnects,
      connectionsInUse: total('inUse'),
      connectionsAwaited: total('awaited'),
      isStandbyAsynchronous: this.#isStandbyAsynchronous,
    };
  }

  /** Wakes followers on other nodes: those of the streams, and those of the agents whose membership changed. */
  announce(written: readonly LogEntry[]): void {
    const members = written.flatMap(({ listings }) =>
      listings.flatMap((row) => (row.kind === 'member' ? row.did : [])),
    );
    this.#notifications.announce([...written.map(({ stream }) => stream), ...members]);
  }

  announceWithheld(): void {
    this.#notifications.announceWithheld();
  }

  /** Abandons the leases under which the entries were decided, because the entries may or may not be written. */
  giveUp(entries: readonly LogEntry[]): void {
    for (const { lease: token } of entries) {
      if (token !== undefined) for (const lease of this.#leases) lease.giveUp(token);
    }
  }

  close(): void {
    this.#notifications.close();
    this.#stopStandbyWatch();
    for (const lease of this.#leases) lease.stop();
  }
}

// What the nodes on one database need of each other: leases, wake-ups, and what a node's metrics show of it.

import { detach } from '../../process/detach.ts';
import type { LogEntry } from '../log.ts';
import type { PublishedTree } from '../published-tree.ts';
import type { Follower, Lease, NodeCoordination, NodeState } from '../store.ts';
import type { StreamId } from '../stream-id.ts';
import type { Connections } from './connections.ts';
import { Growth } from './growth.ts';
import { PostgresLease } from './lease.ts';
import { StandbyWatch } from './standby-watch.ts';

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
}

export class PostgresNodes implements NodeCoordination {
  readonly #parts: Parts;
  readonly #growth: Growth;
  readonly #standby: StandbyWatch;
  readonly #leases: PostgresLease[] = [];

  constructor(parts: Parts) {
    const { logId, connections, heads } = parts;
    this.#parts = parts;
    this.#growth = new Growth({ connect: () => connections.connect(), channel: `chambers_${logId}`, heads });
    this.#standby = new StandbyWatch(connections.query);
    detach(this.#standby.look());
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
      isStandbyAsynchronous: this.#standby.isAsynchronous,
    };
  }

  /** Wakes the other nodes: their followers of the streams, and of the agents whose chambers these are. */
  announce(written: readonly LogEntry[]): void {
    const members = written.flatMap(({ listings }) =>
      listings.flatMap((row) => (row.kind === 'member' ? row.did : [])),
    );
    this.#growth.announce([...written.map(({ stream }) => stream), ...members]);
  }

  /** The entries may or may not be written: the leases under which they were decided end. */
  giveUp(entries: readonly LogEntry[]): void {
    for (const { lease: token } of entries) {
      if (token !== undefined) for (const lease of this.#leases) lease.giveUp(token);
    }
  }

  close(): void {
    this.#growth.close();
    this.#standby.close();
    for (const lease of this.#leases) lease.stop();
  }
}

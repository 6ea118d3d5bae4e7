// A store: the event log with its read model, published tree, metadata, withheld lines and nodes. Each caller uses only the parts that it
// needs.
import type { ForumError } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { CallbackStore } from './callbacks.ts';
import type { EventLog } from './log.ts';
import type { PublishedTree } from './published-tree.ts';
import type { ReadModel } from './read-model.ts';
import type { StreamId } from './stream-id.ts';
import type { Withholding } from './withholding.ts';

export interface Store {
  readonly log: EventLog;
  readonly lists: ReadModel;
  readonly tree: PublishedTree;
  readonly meta: LogMeta;
  readonly callbacks: CallbackStore;
  readonly withholding: Withholding;
  /** Undefined for a store of one process. */
  readonly nodes: NodeCoordination | undefined;
  close(): Promise<void>;
}

/** Metadata stored with the log, and the log's clock. */
export interface LogMeta {
  /** The later of the persisted clock and, when the store was opened, the newest event's `ts` over all streams; 0 in an empty log. */
  readonly lastAt: Millis;
  /** The error of the latest append or persistClock; undefined if it succeeded. */
  readonly writeFailure: ForumError | undefined;
  /** Returns a stored value, e.g. the chain id. */
  recall(name: string): Promise<string | undefined>;
  /** Stores a value, unless the name already has one. */
  remember(name: string, value: string): Promise<void>;
  /** Replaces a value if it still is `before`. */
  replace(name: string, before: string, value: string): Promise<void>;
  /** Persists the clock's reading, so that time does not go back across a restart. */
  persistClock(at: Millis): Promise<void>;
}

/** Coordination among the processes that share a store. */
export interface NodeCoordination {
  /** Keeps trying to acquire the lease, which becomes free when its holder exits or freezes. Called once for each name. */
  lease(name: string): Lease;
  /**
   * Calls `wake` soon after another process has appended to a followed stream, or to any chamber if ALL_CHAMBERS is followed. Calls may be
   * spurious.
   */
  onGrowth(follower: Follower): void;
  /** Runs `check` on the tree of each new connection's server before the connection is used. */
  checkConnections(check: (tree: PublishedTree) => Promise<void>): void;
  state(): NodeState;
}

/** Held by one process at a time. The process may lose the lease at any moment; only an append detects that reliably. */
export interface Lease {
  /** A new token for each acquisition; undefined while the process does not hold the lease. */
  readonly token: string | undefined;
  /** Releases the lease, and stops trying to acquire it. */
  release(): Promise<void>;
}

/** The lease of a process that has its store to itself: the store's lock keeps others out. */
export const SOLE_LEASE: Lease = { token: 'sole', release: async () => {} };

export interface Follower {
  readonly followed: () => Iterable<StreamId>;
  readonly wake: (stream: StreamId) => void;
}

/** Metrics of a process that shares a store. */
export interface NodeState {
  readonly isListening: boolean;
  /** Wake-up connections that were lost and replaced. */
  readonly reconnects: number;
  readonly connectionsInUse: number;
  /** Reads and writes that wait for a connection. */
  readonly connectionsAwaited: number;
  /** Whether a standby is attached for which no commit waits. */
  readonly isStandbyAsynchronous: boolean;
}

// A store: the event log with its read model, published tree, facts, withheld lines and nodes. Each user takes the part that it needs.
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

/** Facts that are kept with the log, and its clock. */
export interface LogMeta {
  /** The later of the persisted clock and, when the store was opened, the newest event's `ts` over all streams; 0 in an empty log. */
  readonly lastAt: Millis;
  /** The error of the latest append or persistClock; undefined if it succeeded. */
  readonly writeFailure: ForumError | undefined;
  /** A fact about the environment, e.g. its chain. */
  recall(name: string): Promise<string | undefined>;
  /** Keeps the first value: a later one changes nothing. */
  remember(name: string, value: string): Promise<void>;
  /** Replaces a fact if it still has the value `before`. */
  replace(name: string, before: string, value: string): Promise<void>;
  /** Persists the clock's reading, so that time does not fall across a restart. */
  persistClock(at: Millis): Promise<void>;
}

/** Coordination among the processes that share a store. */
export interface NodeCoordination {
  /** From now on this process tries to hold the lease, and takes it when its holder ends or freezes. Called once for each name. */
  lease(name: string): Lease;
  /**
   * `wake` is called soon after another process has appended to a followed stream, or to any chamber if ALL_CHAMBERS is followed, and
   * sometimes for nothing.
   */
  onGrowth(follower: Follower): void;
  /** No new connection is used before `check` has resolved for the tree at its server. */
  checkConnections(check: (tree: PublishedTree) => Promise<void>): void;
  state(): NodeState;
}

/** Held by one process at a time. A hold may end at any moment, which only an append notices for certain. */
export interface Lease {
  /** A new one for each hold; undefined while the process does not hold the lease. */
  readonly token: string | undefined;
  /** Ends the hold and the attempts to get another. */
  release(): Promise<void>;
}

/** The lease of a process that has its store alone: the store's lock keeps others out. */
export const SOLE_LEASE: Lease = { token: 'sole', release: async () => {} };

export interface Follower {
  readonly followed: () => Iterable<StreamId>;
  readonly wake: (stream: StreamId) => void;
}

/** For the metrics of a process that shares a store. */
export interface NodeState {
  readonly isListening: boolean;
  /** Connections for wake-ups that were lost and replaced. */
  readonly reconnects: number;
  readonly connectionsInUse: number;
  /** Reads and writes that wait for a connection. */
  readonly connectionsAwaited: number;
  /** A standby is attached that no commit waits for. */
  readonly isStandbyAsynchronous: boolean;
}

// A store: the event log, and what belongs to it. Each user takes the part that it needs.
import type { ForumError } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { EventLog } from './log.ts';
import type { PublishedTree } from './published-tree.ts';
import type { ReadModel } from './read-model.ts';
import type { StreamId } from './stream-id.ts';

export interface Store {
  readonly log: EventLog;
  readonly lists: ReadModel;
  readonly tree: PublishedTree;
  readonly meta: LogMeta;
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
  /** Persists the clock's reading, so that it is not earlier after a restart, and moves derived rows on to it bit by bit. */
  persistClock(at: Millis): Promise<void>;
}

/** What the processes that share a store need of each other. */
export interface NodeCoordination {
  /** This process tries to hold the lease from now on, and takes it when another one ends or freezes. One name is asked for once. */
  lease(name: string): Lease;
  /**
   * `wake` is called when another process has appended to a followed stream, or to any chamber if ALL_CHAMBERS is followed: soon
   * after, and sometimes for nothing.
   */
  onGrowth(follower: Follower): void;
  /** No new connection is used before `check` has resolved for the tree as the server behind it has it. */
  checkConnections(check: (tree: PublishedTree) => Promise<void>): void;
  state(): NodeState;
}

/** What one process at a time may do. A hold may end at any moment, which only an append notices for certain. */
export interface Lease {
  /** Each hold has another token; undefined while the process does not hold the lease. */
  readonly token: string | undefined;
  /** Ends the hold, and waits for no further one. */
  release(): Promise<void>;
}

/** A process that has its store alone always holds it: the store's lock keeps others out. */
export const SOLE_LEASE: Lease = { token: 'sole', release: async () => {} };

export interface Follower {
  readonly followed: () => Iterable<StreamId>;
  readonly wake: (stream: StreamId) => void;
}

/** A process among those that share a store, as its metrics show it. */
export interface NodeState {
  readonly isListening: boolean;
  /** Connections for wake-ups that were lost and replaced. */
  readonly reconnects: number;
  readonly connectionsInUse: number;
  /** Reads and writes that wait for a connection. */
  readonly connectionsAwaited: number;
  /** A standby follows the server, and no commit waits for it. */
  readonly isStandbyAsynchronous: boolean;
}

// A log as a start finds it, before anything is opened for writing. Reading it changes nothing, even while a service runs on it.
import type { Millis } from '../vocabulary/values.ts';
import type { ClockReset } from './clock-reset.ts';
import type { PublishedTree } from './published-tree.ts';

/** Name in `meta` of the log from which this one was copied. */
export const COPIED_FROM = 'copied_from';
/** Name in `meta` of the chain with which the log was first used. */
export const CHAIN_ID = 'chain_id';
/** The newest open chambers are read, up to this number. */
export const OPEN_CHAMBERS_MAX = 100;

export interface FoundLog {
  readonly logId: string;
  /** An earlier release wrote it: the first start migrates it, and that release does not open it again. */
  readonly isMigrationDue: boolean;
  /** Thumbprints of the keys that sign for this log, or for the log from which it was copied; empty if none ever did. */
  readonly keyIds: readonly string[];
  readonly isCopy: boolean;
  readonly chainId: number | undefined;
  /** The latest time that the log has shown. */
  readonly lastAt: Millis;
  /** The time by the database's clock; undefined for a log that uses this machine's. */
  readonly now: Millis | undefined;
  readonly reset: ClockReset;
  /** The highest id of a chamber, 0 without one, and the newest chambers that are not committed. */
  readonly lastChamberId: number;
  readonly openChamberIds: readonly number[];
  /** Runs `work` on the published tree, unless an earlier release, which had none, wrote the log. */
  proveTree(work: (tree: PublishedTree) => Promise<unknown>): Promise<void>;
}

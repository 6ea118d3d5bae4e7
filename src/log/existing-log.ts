// An existing log, inspected before anything is opened for writing. Reading it changes nothing, even while a service runs on it.
import type { Millis } from '../vocabulary/values.ts';
import type { ClockReset } from './clock-reset.ts';
import type { PublishedTree } from './published-tree.ts';

/** `meta` key of the logId from which this log was copied. */
export const COPIED_FROM = 'copied_from';
/** `meta` key of the chain with which the log was first used. */
export const CHAIN_ID = 'chain_id';
/** The maximum number of open chambers that are read, newest first. */
export const OPEN_CHAMBERS_MAX = 100;

export interface ExistingLog {
  readonly logId: string;
  /** Whether an earlier release wrote the log. The first start migrates it, and that release can't open it afterwards. */
  readonly isMigrationDue: boolean;
  /** Thumbprints of the keys that sign for this log or for the log it was copied from; empty if no key ever did. */
  readonly keyIds: readonly string[];
  readonly isCopy: boolean;
  readonly chainId: number | undefined;
  /** The log's time: the persisted clock or the newest event's `ts`. */
  readonly lastAt: Millis;
  /** The current time of the database's clock; undefined for a log that uses this machine's clock. */
  readonly now: Millis | undefined;
  readonly reset: ClockReset;
  /** The highest chamber id; 0 in a log without chambers. */
  readonly lastChamberId: number;
  /** The newest chambers that are not committed. */
  readonly openChamberIds: readonly number[];
  /** Runs `work` on the published tree, unless an earlier release without published trees wrote the log. */
  withTree(work: (tree: PublishedTree) => Promise<unknown>): Promise<void>;
}

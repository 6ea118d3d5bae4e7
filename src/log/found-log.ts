// A log as a start finds it, before anything is opened for writing. Reading it changes nothing, also while a service runs on it.
import type { Millis } from '../vocabulary/values.ts';
import type { ClockReset } from './clock-reset.ts';
import type { PublishedTree } from './published-tree.ts';

/** Name in the meta of the log that this one is a copy of. */
export const COPIED_FROM = 'copied_from';
/** Name in the meta of the chain that the log was first used with. */
export const CHAIN_ID = 'chain_id';
/** Of the chambers that are not committed, the newest are read. */
export const OPEN_CHAMBERS_MAX = 100;

export interface FoundLog {
  readonly logId: string;
  /** An earlier release wrote it: the first start migrates it, and that release does not open it again. */
  readonly isMigrationDue: boolean;
  /** Thumbprints of the keys that sign for this log, or for the one that it is a copy of; empty if none ever did. */
  readonly keyIds: readonly string[];
  readonly isCopy: boolean;
  readonly chainId: number | undefined;
  /** The latest time that the log has shown. */
  readonly lastAt: Millis;
  /** The time by the database's clock; undefined where the log goes by this machine's. */
  readonly now: Millis | undefined;
  readonly reset: ClockReset;
  /** The highest id of a chamber, 0 without one, and the newest chambers that are not committed. */
  readonly lastChamberId: number;
  readonly openChamberIds: readonly number[];
  /** Runs `work` on the published tree. An earlier release may have had none: then it does not run. */
  proveTree(work: (tree: PublishedTree) => Promise<unknown>): Promise<void>;
}

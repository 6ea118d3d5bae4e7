// Withheld lines: a stub replaces a line, whose bytes are gone for good. The stub has the leaf of the line that was, so no hash, proof,
// head or place changes. Withholdings are numbered 1, 2, 3 … in their order.
import type { Page } from './log.ts';
import type { StreamId } from './stream-id.ts';

export interface StubLine {
  readonly stream: StreamId;
  readonly eventId: number;
  /** The canonical stub in UTF-8, without a line break. */
  readonly line: Uint8Array;
}

/** Stubs in the order of withholding. */
export interface WithheldPage extends Page {
  /** The number of the last one; for an empty page, the cursor itself. */
  readonly last: number;
}

/** The streams of which lines were withheld; null if they are unknown, and any stream may be one. */
export type OnWithheld = (streams: ReadonlySet<StreamId> | null) => void;

/** Returns the stub for this log. */
export type Restated = (stub: string) => string;

export interface Erasure {
  /** Whether bytes of withheld lines may still be in the database's files; always false in PostgreSQL, where the operator erases them. */
  readonly isPending: boolean;
  /** Why the last attempt to erase them did not succeed. */
  readonly problem: string | undefined;
}

export interface Withholding {
  /**
   * The last withholding that this process has heard of. What was read from the log before it rose may hold a withheld text: compare it
   * before a read and after, and keep nothing that was read across a change.
   */
  readonly through: number;
  /**
   * Called synchronously when `through` rises, before `withhold` resolves; and with null whenever this process could not ask the database
   * for WITHHELD_UNCONFIRMED_MS_MAX. The listener drops every cached state and response of the streams.
   */
  onWithheld(listener: OnWithheld): void;
  /**
   * Replaces the lines in one transaction, durably, and returns the stubs that were written: the first stub of an event is final, and the
   * others change nothing. Throws an Error if an event is missing or the line is not a stub of its line; then nothing is written.
   */
  withhold(stubs: readonly StubLine[]): Promise<readonly StubLine[]>;
  /**
   * Replaces every stub that was signed for another log, as in a copy, by what `restated` makes of it, in transactions of bounded size;
   * returns their number. Called before anything else reads the log. What a process began, the next one finishes; with nothing to do, it
   * reads one row.
   */
  restate(restated: Restated): Promise<number>;
  /** At most `limit` stubs after the number, bounded as in readPage. */
  read(after: number, limit: number): Promise<WithheldPage>;
  /** How many lines of the stream are withheld. */
  revisionOf(stream: StreamId): Promise<number>;
  readonly erasure: Erasure;
}

/** A node that could not ask its database for so long drops what it has cached. */
export const WITHHELD_UNCONFIRMED_MS_MAX = 5_000;

// Withheld lines: a stub replaces a line, whose bytes are removed permanently. The stub has the leaf of the original line, so no hash,
// proof, head or place changes. Withholdings are numbered 1, 2, 3 … in order.
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
  /** The number of the last stub; for an empty page, the cursor itself. */
  readonly last: number;
}

/** Receives the streams in which lines were withheld; null if it may be any stream. */
export type OnWithheld = (streams: ReadonlySet<StreamId> | null) => void;

/** Returns the same stub, signed for this log. */
export type RestateStub = (stub: string) => string;

export interface Erasure {
  /** Whether bytes of withheld lines may still be in the database's files; always false in PostgreSQL, where the operator erases them. */
  readonly isPending: boolean;
  /** Why the last attempt to erase them failed. */
  readonly problem: string | undefined;
}

export interface Withholding {
  /**
   * The last withholding that this process knows of. Data that was read before this number rose may hold withheld text: compare the number
   * before and after a read, and discard the data if it changed.
   */
  readonly through: number;
  /**
   * Calls the listener synchronously when `through` rises, before `withhold` resolves; and with null whenever this process could not query
   * the database for WITHHELD_UNCONFIRMED_MS_MAX. The listener drops every cached state and response of the streams.
   */
  onWithheld(listener: OnWithheld): void;
  /**
   * Replaces the lines durably, in one transaction, and returns the stubs that were written. The first stub of an event is final; later
   * ones change nothing. Throws an Error, and writes nothing, if an event is missing or a stub does not match its line.
   */
  withhold(stubs: readonly StubLine[]): Promise<readonly StubLine[]>;
  /**
   * Replaces every stub that was signed for another log, as in a copy, by the stub that `restateStub` returns, in transactions of bounded
   * size. Returns the number of replaced stubs. Called before anything else reads the log. If the process dies, the next start finishes the
   * work. If there is nothing to do, only one row is read.
   */
  restate(restateStub: RestateStub): Promise<number>;
  /** Reads at most `limit` stubs after the number `after`, bounded as in readPage. */
  read(after: number, limit: number): Promise<WithheldPage>;
  /** The number of withheld lines in the stream. */
  revisionOf(stream: StreamId): Promise<number>;
  readonly erasure: Erasure;
}

/** A node that could not query its database for this long drops its caches. */
export const WITHHELD_UNCONFIRMED_MS_MAX = 5_000;

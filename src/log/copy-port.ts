// What a copy of a log needs of a store.
import type { StreamId } from './stream-id.ts';

export interface EventRow {
  readonly stream: StreamId;
  readonly event_id: number;
  readonly line: Buffer;
  readonly signature: Buffer | null;
  readonly nodes: Buffer | null;
}

/** What no line holds, and the published tree. The clock is in `meta`; what each store keeps there for itself is left out. */
export const KEPT_TABLES = ['meta', 'registrations', 'contacts', 'tiles', 'checkpoints'] as const;
export type KeptTable = (typeof KEPT_TABLES)[number];
export type KeptRow = Readonly<Record<string, string | number | Buffer>>;

export interface CopySource {
  /** Page by page, in the order of all lines. Throws at a damaged one. */
  events(): AsyncIterable<readonly EventRow[]> | Iterable<readonly EventRow[]>;
  kept(table: KeptTable): AsyncIterable<readonly KeptRow[]> | Iterable<readonly KeptRow[]>;
  movedTo(): Promise<string | undefined>;
  /** Durable when it resolves. */
  markMoved(to: string): Promise<void>;
  /** Unlocks it. */
  close(): Promise<void>;
}

export interface CopyTarget extends Pick<CopySource, 'events' | 'kept' | 'close'> {
  writeEvents(rows: readonly EventRow[]): Promise<void>;
  writeKept(table: KeptTable, rows: readonly KeptRow[]): Promise<void>;
  /** Makes what is derived; throws if a line does not follow from those before it. */
  derive(): Promise<void>;
  /** Lets services start on it. */
  publish(): Promise<void>;
}

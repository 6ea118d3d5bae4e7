// A whole log, which a program reads or writes in one transaction.
import type { Millis } from '../../vocabulary/values.ts';
import type { Fault } from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import type { StubLine } from '../withholding.ts';
import type { SqlTransaction } from './sql.ts';
import { META, upsert } from './tables.ts';

/** A consistent snapshot of a log, even while a service runs on it. Closing it rolls back uncommitted changes. */
export interface WholeLog extends SqlTransaction {
  /** Whether the transaction can continue after a statement has failed, e.g. because of a damaged page. */
  readonly survivesErrors: boolean;
  /** Reports faults that only this kind of database can have. */
  checkDatabase(report: (fault: Fault) => void, badStreams: ReadonlySet<StreamId>): Promise<void>;
  lastAt(): Promise<Millis>;
  close(): Promise<void>;
}

/** A log to which no other program can write. A service may run on it only with PostgreSQL. */
export interface WritableLog extends WholeLog {
  /** The current time of the log's clock. */
  now(): Promise<Millis>;
  requireNoService(): Promise<void>;
  /** Blocks appends and publications by nodes until the transaction ends. */
  blockAppends(): Promise<void>;
  placeLines(): Promise<void>;
  emptyDerivedTables(): Promise<void>;
  /** Sets whether running nodes may append after the commit. */
  allowAppends(isAllowed: boolean): Promise<void>;
  /** Allows the transaction to replace these lines by their stubs. */
  allowStubs(stubs: readonly StubLine[]): void;
  commit(): Promise<void>;
  /** Removes the bytes of deleted rows from the files after the commit. Returns the tables for which the operator has to do this. */
  eraseBytes(): Promise<readonly string[]>;
}

/** An empty log. No service can start on it before it is committed. */
export interface NewLog extends WholeLog {
  /** Called with the lines ordered by place. */
  writeLines(lines: readonly WholeLine[]): Promise<void>;
  /** Writes as much as possible before the commit, so that a full disk is detected here. */
  flush(): Promise<void>;
  commit(): Promise<void>;
}

export interface WholeLine {
  readonly stream: StreamId;
  readonly event_id: number;
  readonly at: Millis;
  readonly line: Buffer;
  readonly signature: Buffer | null;
  readonly nodes: Buffer | null;
  readonly line_crc: number;
  readonly nodes_crc: number | null;
}

export async function readMeta({ query }: SqlTransaction, name: string): Promise<string | undefined> {
  const [row] = await query<{ readonly value: string }>('SELECT value FROM meta WHERE name = $1', [name]);
  return row?.value;
}

export async function writeMeta({ query }: SqlTransaction, name: string, value: string): Promise<void> {
  await query(upsert(META, 'VALUES ($1, $2)'), [name, value]);
}

/** Throws the fault as an Error. Used by programs that can't continue after a fault. */
export function throwFault({ stream, eventId, problem }: Pick<Fault, 'stream' | 'eventId' | 'problem'>): never {
  throw new Error(eventId === null ? problem : `event ${eventId} of ${stream} is damaged: ${problem}`);
}

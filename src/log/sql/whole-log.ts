// A log as programs open it that read or write the whole of it: one transaction. What they all need of it is below.
import type { Millis } from '../../vocabulary/values.ts';
import type { Fault } from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import type { SqlTransaction } from './sql.ts';
import { META, upsert } from './tables.ts';

/** Read at one moment, also while a service runs on it; what is not committed is undone when it is closed. */
export interface WholeLog extends SqlTransaction {
  /** Whether the transaction goes on after an error of one statement, as of a damaged page. */
  readonly survivesErrors: boolean;
  /** Faults that only this kind of database can have. */
  checkOwn(report: (fault: Fault) => void, badStreams: ReadonlySet<StreamId>): Promise<void>;
  /** The latest time that the log has shown. */
  lastAt(): Promise<Millis>;
  close(): Promise<void>;
}

/** No second program writes to it, and with one process alone no service runs on it. */
export interface WritableLog extends WholeLog {
  /** The time by the log's clock. */
  now(): Promise<Millis>;
  /** Throws an Error of one line if a service runs on the log. */
  requireNoService(): Promise<void>;
  /** No node appends or publishes before the transaction ends. */
  holdAppends(): Promise<void>;
  /** Gives a place to every line. */
  placeLines(): Promise<void>;
  /** Makes the derived tables empty. */
  emptyDerivedTables(): Promise<void>;
  /** Whether running nodes may append after the commit. */
  allowAppends(isAllowed: boolean): Promise<void>;
  commit(): Promise<void>;
}

/** A log without lines, which no service can start on before it is committed. */
export interface NewLog extends WholeLog {
  /** In the order of their places, from the first on. */
  writeLines(lines: readonly WholeLine[]): Promise<void>;
  /** Does what can fail for want of room, as far as it can be done before the commit. */
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

/** For programs that can't go on from a fault. */
export function throwFault({ stream, eventId, problem }: Pick<Fault, 'stream' | 'eventId' | 'problem'>): never {
  throw new Error(eventId === null ? problem : `event ${eventId} of ${stream} is damaged: ${problem}`);
}

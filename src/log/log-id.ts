// The id of a log: every copy that goes on by itself has one of its own.
import { randomBytes } from 'node:crypto';
import type { FormerLog } from './published-tree.ts';

const ID_BYTES = 16;

/** Name in the meta of the thumbprints of the keys that sign for the log, sorted, with a space between; a copy of the database has it too. */
export const SERVICE_KEYS = 'service_keys';

export function toKeyIds(recorded: string | undefined): readonly string[] {
  return recorded?.split(' ') ?? [];
}

export function newLogId(): string {
  return randomBytes(ID_BYTES).toString('hex');
}

/** How a database goes on as another log. */
export interface Renewal {
  readonly logId: string;
  /** What was published of the log before. */
  readonly former?: FormerLog | undefined;
  /** Called when no service can start on the database meanwhile, before it has the id: a process that dies in between leaves it as it was. */
  readonly prepare?: () => void;
}

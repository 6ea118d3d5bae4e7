// The identity of a log: its id, the keys that sign for it, its public name, and the store that it has moved to. All are stored in `meta`.
import { randomBytes } from 'node:crypto';
import type { FormerLog } from './published-tree.ts';
import type { LogMeta } from './store.ts';

const ID_BYTES = 16;

/** `meta` key of the thumbprints of the keys that sign for the log, sorted and separated by spaces. Copies of the database keep it. */
export const SERVICE_KEYS = 'service_keys';

export function toKeyIds(recorded: string | undefined): readonly string[] {
  return recorded?.split(' ') ?? [];
}

/** Each copy that continues as an independent log gets its own id. */
export function newLogId(): string {
  return randomBytes(ID_BYTES).toString('hex');
}

/** The new identity of a database that continues as another log. */
export interface Renewal {
  readonly logId: string;
  /** The last published state of the previous log. */
  readonly former?: FormerLog | undefined;
  /** Called before the new id is committed, while no service can start on the database. */
  readonly prepare?: () => Promise<unknown>;
}

/**
 * Returns the public name of a log, `<host>/log/<logId>`, under which its checkpoints are signed. The first call fixes the name; later
 * changes of the service's address do not affect it.
 */
export async function originOf(meta: LogMeta, logId: string, url: string): Promise<string> {
  const name = `origin ${logId}`;
  const known = await meta.recall(name);
  if (known !== undefined) return known;
  await meta.remember(name, `${new URL(url).host}/log/${logId}`);
  return (await meta.recall(name)) as string;
}

/** `meta` key of the store that the log has moved to. */
export const MOVED_TO = 'moved_to';

export class LogHasMoved extends Error {}

/** A log that was moved to another store accepts no more events: with two writers, one logId would have two histories. */
export function requireNotMoved(movedTo: string | undefined): void {
  if (movedTo === undefined) return;
  throw new LogHasMoved(`its log has moved to ${movedTo}; if there is none, repeat chambers copy`);
}

// The identity of a log: its id, the keys that sign for it, its public name, and the place that it has moved to. Each is a fact in `meta`.
import { randomBytes } from 'node:crypto';
import type { FormerLog } from './published-tree.ts';
import type { LogMeta } from './store.ts';

const ID_BYTES = 16;

/** Name in `meta` of the thumbprints of the keys that sign for the log, sorted, with a space between; a copy of the database has it too. */
export const SERVICE_KEYS = 'service_keys';

export function toKeyIds(recorded: string | undefined): readonly string[] {
  return recorded?.split(' ') ?? [];
}

/** Each copy that continues as an independent log has its own. */
export function newLogId(): string {
  return randomBytes(ID_BYTES).toString('hex');
}

/** How a database continues as another log. */
export interface Renewal {
  readonly logId: string;
  /** The last published state of the log before. */
  readonly former?: FormerLog | undefined;
  /** Called while no service can start on the database, before it gets the id: a process that dies in between leaves it unchanged. */
  readonly prepare?: () => void;
}

/**
 * The public name of a log, `<host>/log/<logId>`, under which its checkpoints are signed. It is fixed at its first use, with the service's
 * address at that time, and stays when the address changes.
 */
export async function originOf(meta: LogMeta, logId: string, url: string): Promise<string> {
  // A renewed log has another logId, and so another origin.
  const name = `origin ${logId}`;
  const known = await meta.recall(name);
  if (known !== undefined) return known;
  await meta.remember(name, `${new URL(url).host}/log/${logId}`);
  return (await meta.recall(name)) as string;
}

/** Name in `meta` of the store that the log has moved to. */
export const MOVED_TO = 'moved_to';

/** One line. */
export class LogHasMoved extends Error {}

/** A log that was copied to another store takes no more events: with two writers, one logId would have two histories. */
export function requireNotMoved(movedTo: string | undefined): void {
  if (movedTo === undefined) return;
  throw new LogHasMoved(`its log has moved to ${movedTo}; if there is none, repeat chambers copy`);
}

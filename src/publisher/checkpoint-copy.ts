// The copy of the last checkpoint outside the database, on each node. A database that is behind it, or has another root at its size, is
// not the log that was published: a start on it would publish a second history.
import { readFileSync } from 'node:fs';
import { replaceFile } from '../files/durable-file.ts';
import type { ServiceKey } from '../keys/service-keys.ts';
import type { EventLog } from '../log/log.ts';
import type { PublishedTree, StoredCheckpoint } from '../log/published-tree.ts';
import type { Checkpoint } from '../tlog/checkpoint.ts';
import { isKeyName, NOTE_BYTES_MAX } from '../tlog/note.ts';
import { openCheckpoint } from '../tlog/proof.ts';
import { rootOfTiles } from '../tlog/tiled-tree.ts';
import { grow, openStoredTree } from './publisher.ts';
import { checkpointKey } from './signer.ts';

/** The copy's path, next to the key file. */
export function checkpointCopyPath(keyFile: string): string {
  return `${keyFile}.checkpoint`;
}

/** Undefined where there is none. */
export function readCheckpointCopy(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read: ${message}`, { cause: error });
  }
}

/** Several nodes on one machine may share the file. */
export function writeCheckpointCopy(path: string, note: string): Promise<void> {
  return replaceFile(path, note, { mode: 0o600 });
}

export interface CheckedLog {
  readonly log: Pick<EventLog, 'logId' | 'lastPlace'>;
  readonly tree: PublishedTree;
  /** All that have signed checkpoints of the log. */
  readonly keys: readonly Pick<ServiceKey, 'publicKey'>[];
}

const ADVICE =
  'restore a newer copy of the database, or go on as another log: chambers new-log gives it a new logId and keeps this checkpoint';

/** Throws an Error of one line unless the log extends the checkpoint in the file. */
export async function requireExtends(path: string, { log, tree, keys }: CheckedLog): Promise<void> {
  const note = readCheckpointCopy(path);
  if (note === undefined) return;
  const copy = openCopy(note, keys);
  if (copy === undefined) {
    throw new Error(
      `${path} is not a checkpoint that the keys of this log have signed: move it away if it was damaged`,
    );
  }
  const { logId, size } = copy;
  if (logId !== log.logId) {
    // This node's copy is of the log that this one was made from on another node.
    if (((await tree.checkpoint(logId))?.size ?? 0) >= size) return;
    throw new Error(`${path} is a checkpoint of log ${logId}, and the database holds log ${log.logId}: ${ADVICE}`);
  }
  const lines = await log.lastPlace();
  if (lines < size) {
    throw new Error(
      `the log has ${lines} lines, and ${path} is a checkpoint that was published over ${size}: ${ADVICE}`,
    );
  }
  if (Buffer.compare(await rootAt(size, tree), copy.root) === 0) return;
  throw new Error(`the checkpoint ${path} was published over other lines than the first ${size} of the log: ${ADVICE}`);
}

interface CheckpointCopy extends Checkpoint {
  readonly logId: string;
}

/** The origin was fixed at the first use, so the service's address may have changed since; it ends with the log's id. */
export function openCopy(note: string, keys: CheckedLog['keys']): CheckpointCopy | undefined {
  const [, origin = '', logId = ''] = ORIGIN.exec(note.slice(0, NOTE_BYTES_MAX)) ?? [];
  if (!isKeyName(origin)) return undefined;
  for (const key of keys) {
    const opened = openCheckpoint(note, checkpointKey(origin, key));
    if (opened !== undefined) return { ...opened, logId };
  }
  return undefined;
}

const ORIGIN = /^([^\n]+\/log\/([0-9a-f]{32}))\n/;

/** The copy may be of a checkpoint that the database has no longer, and its lines still be there. */
async function rootAt(size: number, tree: PublishedTree): Promise<Uint8Array> {
  const stored: StoredCheckpoint | undefined = await tree.checkpoint();
  if (stored !== undefined && stored.size >= size) return rootOfTiles(size, tree.readTiles);
  const growing = await openStoredTree(tree, stored);
  await grow(growing, tree, size);
  return growing.root();
}

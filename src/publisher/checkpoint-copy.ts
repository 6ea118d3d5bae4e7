// Each node's copy of the last checkpoint, outside the database.
import { readFileSync } from 'node:fs';
import { replaceFile } from '../files/durable-file.ts';
import type { ServiceKey } from '../keys/service-keys.ts';
import type { Checkpoint } from '../tlog/checkpoint.ts';
import { isKeyName, NOTE_BYTES_MAX } from '../tlog/note.ts';
import { openCheckpoint } from '../tlog/proof.ts';
import { checkpointKey } from './publisher.ts';

export function checkpointCopyPath(keyFile: string): string {
  return `${keyFile}.checkpoint`;
}

/** Returns undefined if there is no copy. */
export function readCheckpointCopy(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read: ${message}`, { cause: error });
  }
}

export function writeCheckpointCopy(path: string, note: string): Promise<void> {
  return replaceFile(path, note, { mode: 0o600 });
}

interface CheckpointCopy extends Checkpoint {
  readonly logId: string;
}

/** Takes the origin from the note, because the log keeps its origin when the service's address changes. */
export function openCopy(note: string, keys: readonly Pick<ServiceKey, 'publicKey'>[]): CheckpointCopy | undefined {
  const [, origin = '', logId = ''] = ORIGIN.exec(note.slice(0, NOTE_BYTES_MAX)) ?? [];
  if (!isKeyName(origin)) return undefined;
  for (const key of keys) {
    const opened = openCheckpoint(note, checkpointKey(origin, key));
    if (opened !== undefined) return { ...opened, logId };
  }
  return undefined;
}

const ORIGIN = /^([^\n]+\/log\/([0-9a-f]{32}))\n/;

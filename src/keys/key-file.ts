// The service's key file. Only its owner may read it, and it is always replaced as a whole.
import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFile, replaceFile } from '../files/durable-file.ts';
import { isOpenToOthers } from '../files/private-file.ts';
import type { Millis } from '../vocabulary/values.ts';
import { parseKeys, type ServiceKeys, withLogId, withNewKeys } from './service-keys.ts';

const OWNER_ONLY = { mode: 0o600, keepsOwner: true } as const;
const FILE_BYTES_MAX = 1_048_576;

/** Returns a path next to the database, with the log's id in the name, so that no two logs share the default. */
export function defaultKeyFile(databasePath: string, logId: string): string {
  return join(dirname(databasePath), `service-keys-${logId}.json`);
}

/** Returns undefined if there is no file. Throws an Error with a one-line message. */
export function readKeyFile(path: string, logId: string): ServiceKeys | undefined {
  const text = readText(path);
  if (text === undefined) return undefined;
  try {
    const keys = parseKeys(text);
    if (keys.logId !== logId)
      throw new Error(`it has the keys of log ${keys.logId}, but this log is ${logId}: ${OTHER_LOG}`);
    return keys;
  } catch (error) {
    throw new Error(`${path} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

/** Either the database was lost and the service created an empty one, or the database was restored from a backup. */
const OTHER_LOG =
  'restore the lost database or a copy of it; a copy is another log: chambers new-log continues it with these keys';

/** Creates the file with new keys, unless the file exists. Returns the keys in the file. */
export async function createKeyFile(path: string, logId: string, now: Millis): Promise<ServiceKeys> {
  try {
    await createFile(path, newKeys(undefined, { logId, now, until: now }), OWNER_ONLY);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw new Error(`${path} cannot be created: ${message}`, { cause: error });
  }
  return readKeyFile(path, logId) as ServiceKeys;
}

/** Adds new keys to the file. The former keys stay valid until `until`, for chambers that pinned them. */
export async function rotateKeyFile(
  path: string,
  { now, until }: { readonly now: Millis; readonly until: Millis },
): Promise<ServiceKeys> {
  const before = requireText(path);
  const { logId } = parseKeys(before);
  await replaceFile(path, newKeys(before, { logId, now, until }), OWNER_ONLY);
  return readKeyFile(path, logId) as ServiceKeys;
}

/** Writes the keys to `target`, which may be the same file, as the keys of the log `logId`, which continues the keys' former log. */
export async function copyKeyFileForLog(path: string, target: string, logId: string): Promise<ServiceKeys> {
  await replaceFile(target, withLogId(requireText(path), logId), OWNER_ONLY);
  return readKeyFile(target, logId) as ServiceKeys;
}

/** Reads the keys of any log. Returns undefined if there is no file. Throws an Error with a one-line message. */
export function readAnyKeyFile(path: string): ServiceKeys | undefined {
  const text = readText(path);
  return text === undefined ? undefined : parseKeys(text);
}

export function keysInMemory(logId: string, now: Millis): ServiceKeys {
  return parseKeys(newKeys(undefined, { logId, now, until: now }));
}

function newKeys(before: string | undefined, rest: { logId: string; now: Millis; until: Millis }): string {
  const seed = () => `0x${randomBytes(32).toString('hex')}`;
  return withNewKeys(before, { ...rest, seeds: { receipts: seed(), checkpoints: seed() } });
}

function requireText(path: string): string {
  const text = readText(path);
  if (text === undefined) throw new Error(`${path} not found`);
  return text;
}

function readText(path: string): string | undefined {
  try {
    const file = statSync(path);
    if (!file.isFile()) throw new Error('not a regular file');
    if (isOpenToOthers(path)) throw new Error(`other users can access it: run chmod 600 ${path}`);
    if (file.size > FILE_BYTES_MAX) throw new Error('too large for a key file');
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be used: ${message}`, { cause: error });
  }
}

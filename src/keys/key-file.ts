// The file of the service's keys, which only its owner may read: it is never changed in place, and a new one is never half there.
import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFileSync, replaceFileSync } from '../files/durable-file.ts';
import { isOpenToOthers } from '../files/private-file.ts';
import type { Millis } from '../vocabulary/values.ts';
import { parseKeys, type ServiceKeys, withLogId, withNewKeys } from './service-keys.ts';

const OWNER_ONLY = { mode: 0o600, keepsOwner: true } as const;
const FILE_BYTES_MAX = 1_048_576;

/** The default file of a log's keys, if no variable names one: next to its database, and never where another log's is. */
export function defaultKeyFile(databasePath: string, logId: string): string {
  return join(dirname(databasePath), `service-keys-${logId}.json`);
}

/** The keys in the file; undefined where there is none. Throws an Error of one line. */
export function readKeyFile(path: string, logId: string): ServiceKeys | undefined {
  const text = readText(path);
  if (text === undefined) return undefined;
  try {
    const keys = parseKeys(text);
    if (keys.logId !== logId)
      throw new Error(`it holds the keys of log ${keys.logId}, and this log is ${logId}: ${OTHER_LOG}`);
    return keys;
  } catch (error) {
    throw new Error(`${path} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

/** The database was lost, and the start has made an empty one; or it is a backup that was restored. */
const OTHER_LOG =
  'put back a database that was lost, or a copy of it; a copy is another log: chambers new-log goes on with it, and keeps these keys for it';

/** Makes the file with new keys for the log, unless another process has just made it; returns the keys in the file. */
export function createKeyFile(path: string, logId: string, now: Millis): ServiceKeys {
  try {
    createFileSync(path, newKeys(undefined, { logId, now, until: now }), OWNER_ONLY);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw new Error(`${path} cannot be made: ${message}`, { cause: error });
  }
  return readKeyFile(path, logId) as ServiceKeys;
}

/** Adds new keys to the file, which sign from now on; those before them sign until then for chambers that pinned them. */
export function rotateKeyFile(
  path: string,
  { now, until }: { readonly now: Millis; readonly until: Millis },
): ServiceKeys {
  const before = requireText(path);
  const { logId } = parseKeys(before);
  replaceFileSync(path, newKeys(before, { logId, now, until }), OWNER_ONLY);
  return readKeyFile(path, logId) as ServiceKeys;
}

/** Writes the keys in the file as those of another log, which was made from theirs: to `target`, which may be the file itself. */
export function bequeathKeyFile(path: string, target: string, logId: string): ServiceKeys {
  replaceFileSync(target, withLogId(requireText(path), logId), OWNER_ONLY);
  return readKeyFile(target, logId) as ServiceKeys;
}

/** The keys in the file, of whichever log; undefined where there is none. Throws an Error of one line. */
export function readAnyKeyFile(path: string): ServiceKeys | undefined {
  const text = readText(path);
  return text === undefined ? undefined : parseKeys(text);
}

/** Keys for a log that ends with the process. */
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
    if (isOpenToOthers(path)) throw new Error(`other users may use it: run chmod 600 ${path}`);
    if (file.size > FILE_BYTES_MAX) throw new Error('too large for a key file');
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be used: ${message}`, { cause: error });
  }
}

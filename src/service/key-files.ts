// The file of a log's keys, and the copy of its last checkpoint beside it.
import { dirname } from 'node:path';
import { type Config, readConfigured } from '../config.ts';
import { makeFolder } from '../files/durable-file.ts';
import { createKeyFile, defaultKeyFile, keysInMemory, readAnyKeyFile, readKeyFile } from '../keys/key-file.ts';
import type { ServiceKeys } from '../keys/service-keys.ts';
import { checkpointCopyPath } from '../publisher/checkpoint-copy.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface KeptLog {
  readonly logId: string;
  /** Whether this log, or the one that it is a copy of, has signed with keys before. */
  readonly hadKeys: boolean;
}

/** Undefined for a log in memory, which has its keys there too, and for a log that has no id yet. */
export function keyFileOf(
  { SERVICE_KEY_FILE: named, DATABASE_PATH: databasePath }: Config,
  logId: string | undefined,
): string | undefined {
  if (named !== undefined) return named;
  return databasePath === ':memory:' || logId === undefined ? undefined : defaultKeyFile(databasePath, logId);
}

export function checkpointCopyOf(config: Config, logId: string): string | undefined {
  const keyFile = keyFileOf(config, logId);
  return keyFile && checkpointCopyPath(keyFile);
}

/**
 * The keys of a log, or of one that is still to be made; undefined where a start makes them. Throws ConfigError. A missing file is a
 * mistake in production, where each node would make its own, and of a log that had keys, which others would replace.
 */
export function findKeys(config: Config, log: KeptLog | undefined): ServiceKeys | undefined {
  return readConfigured('SERVICE_KEY_FILE', () => {
    const path = keyFileOf(config, log?.logId);
    if (path === undefined) return undefined;
    const keys = log === undefined ? requireNoKeys(path) : readKeyFile(path, log.logId);
    if (keys === undefined && log?.hadKeys)
      throw new Error(
        `${path} not found, and the log had keys: put the file back; if the database is a copy, run chambers new-log, which keeps them; if they are lost, run chambers admin new-keys --file=${path}`,
      );
    if (keys === undefined && config.NODE_ENV === 'production')
      throw new Error(`${path} not found: chambers admin new-keys makes it, once for all nodes`);
    return keys;
  });
}

/** The database was lost, or another one is named: the start would make an empty log, which has none of these keys. */
function requireNoKeys(path: string): undefined {
  const keys = readAnyKeyFile(path);
  if (keys === undefined) return undefined;
  throw new Error(
    `${path} cannot be used: it holds the keys of log ${keys.logId}, and the database has no log: put back a database that was lost, or a copy of it; for a new log name another file`,
  );
}

/** Makes those that are missing. */
export function openKeys(config: Config, log: KeptLog, now: Millis): ServiceKeys {
  const found = findKeys(config, log);
  const path = keyFileOf(config, log.logId);
  if (found !== undefined) return found;
  if (path === undefined) return keysInMemory(log.logId, now);
  // Only the folder of the default path is made: a configured one that is missing is more likely a mistake.
  if (config.SERVICE_KEY_FILE === undefined) makeFolder(dirname(path));
  return readConfigured('SERVICE_KEY_FILE', () => createKeyFile(path, log.logId, now));
}

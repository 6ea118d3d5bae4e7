// The file of a log's keys, and the copy of its last checkpoint next to it. The log records which keys sign for it, so that no node signs
// with different keys.
import { dirname } from 'node:path';
import { type Config, ConfigError, readConfigured } from '../config.ts';
import { makeFolder } from '../files/durable-file.ts';
import { createKeyFile, defaultKeyFile, keysInMemory, readAnyKeyFile, readKeyFile } from '../keys/key-file.ts';
import type { ServiceKeys } from '../keys/service-keys.ts';
import type { ExistingLog } from '../log/existing-log.ts';
import { SERVICE_KEYS, toKeyIds } from '../log/log-id.ts';
import type { LogMeta, Store } from '../log/store.ts';
import { checkpointCopyPath } from '../publisher/checkpoint-copy.ts';
import { messageOf } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';

type LogWithKeys = Pick<ExistingLog, 'logId' | 'keyIds'>;

/** Returns undefined for a log in memory, whose keys are in memory too, and for a log that does not exist yet. */
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
 * Returns the keys from the log's file; undefined if they must be created. Throws if they are not the log's keys, or if the file is
 * missing although the log has keys.
 */
export function readKeys(config: Config, log: LogWithKeys | undefined): ServiceKeys | undefined {
  const path = keyFileOf(config, log?.logId);
  if (path === undefined) return undefined;
  if (log === undefined) return requireNoKeys(path);
  const keys = readKeyFile(path, log.logId);
  if (keys !== undefined) requireRecorded(keys, log.keyIds, path);
  else if (log.keyIds.length > 0) {
    throw new Error(
      `${path} not found, and the log has keys: put the file back, or copy that of another node; if the database is a copy, run chambers new-log, which keeps them; if they are lost, run chambers admin new-keys --lost --file=${path}`,
    );
  }
  return keys;
}

/** Rejects existing keys if there is no log: the database was lost, or DATABASE_PATH is wrong, and a start would create an empty log. */
function requireNoKeys(path: string): undefined {
  const keys = readAnyKeyFile(path);
  if (keys === undefined) return undefined;
  throw new Error(
    `${path} cannot be used: it has the keys of log ${keys.logId}, but the database has no log: restore the lost database or a copy of it; for a new log name another file`,
  );
}

/** Requires each recorded key, because clients would reject signatures of other keys. After a rotation, the file has additional keys. */
export function requireRecorded({ thumbprints }: ServiceKeys, keyIds: readonly string[], path: string): void {
  const missing = keyIds.filter((keyId) => !thumbprints.includes(keyId));
  if (missing.length === 0) return;
  throw new Error(
    `${path} cannot be used: it lacks keys of the log (${missing.join(', ')}): copy the key file of the node that has them; if they are lost, run chambers admin new-keys --lost --file=${path}`,
  );
}

/** Like readKeys, but throws ConfigError. In production a missing file is an error: each node would create its own keys. */
export function findKeys(config: Config, log: LogWithKeys | undefined): ServiceKeys | undefined {
  return readConfigured('SERVICE_KEY_FILE', () => {
    const keys = readKeys(config, log);
    const path = keyFileOf(config, log?.logId);
    if (keys === undefined && path !== undefined && config.NODE_ENV === 'production')
      throw new Error(`${path} not found: run chambers admin new-keys once, and use its file on all nodes`);
    return keys;
  });
}

/** Creates missing keys, and records them in the log. Throws ConfigError. */
export async function openKeys(config: Config, { log, meta }: Store, now: Millis): Promise<ServiceKeys> {
  const { logId } = log;
  const recorded = await meta.recall(SERVICE_KEYS);
  const keys = findKeys(config, { logId, keyIds: toKeyIds(recorded) }) ?? (await makeKeys(config, logId, now));
  const keyIds = toKeyIds(await recordKeys(meta, keys, recorded));
  const path = keyFileOf(config, logId);
  if (path !== undefined) readConfigured('SERVICE_KEY_FILE', () => requireRecorded(keys, keyIds, path));
  return keys;
}

async function makeKeys(config: Config, logId: string, now: Millis): Promise<ServiceKeys> {
  const path = keyFileOf(config, logId);
  if (path === undefined) return keysInMemory(logId, now);
  // Only the default folder is created, because a missing configured folder is more likely a mistake.
  if (config.SERVICE_KEY_FILE === undefined) await makeFolder(dirname(path));
  try {
    return await createKeyFile(path, logId, now);
  } catch (error) {
    throw new ConfigError([{ variable: 'SERVICE_KEY_FILE', problem: messageOf(error) }]);
  }
}

/** Replaces the `recorded` keys. Returns the log's keys, which are those of another node if it was faster. */
export async function recordKeys(
  meta: LogMeta,
  keys: ServiceKeys,
  recorded: string | undefined,
): Promise<string | undefined> {
  const ids = keys.thumbprints.join(' ');
  if (recorded === ids) return recorded;
  if (recorded === undefined) await meta.remember(SERVICE_KEYS, ids);
  else await meta.replace(SERVICE_KEYS, recorded, ids);
  return meta.recall(SERVICE_KEYS);
}

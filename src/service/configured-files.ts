// Files that the configuration names.
import { readFileSync, statSync } from 'node:fs';
import { type Config, readConfigured } from '../config.ts';
import { readDids } from '../http/access-list.ts';
import { type PolicyWitness, parsePolicy } from '../tlog/policy.ts';

/** Throws a ConfigError that names the variable of a list that can't be read. */
export function readLists({ ALLOW_LIST_FILE: allowFile, BAN_LIST_FILE: banFile }: Config): void {
  if (allowFile !== undefined) readConfigured('ALLOW_LIST_FILE', () => readDids(allowFile));
  if (banFile !== undefined) readConfigured('BAN_LIST_FILE', () => readDids(banFile));
}

/** Throws ConfigError. */
export function readWitnesses({ WITNESS_POLICY_FILE: path }: Config): readonly PolicyWitness[] {
  if (path === undefined) return [];
  return readConfigured('WITNESS_POLICY_FILE', () => parsePolicy(readFileSync(path, 'utf8'))).witnesses;
}

/** In Unix seconds; NaN if no file is configured, 0 if it is missing. A backup touches the file after its check. */
export function lastBackupAt({ BACKUP_STAMP_FILE: path }: Config): number {
  if (path === undefined) return Number.NaN;
  return (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1000;
}

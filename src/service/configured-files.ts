// The files that variables name, read whole at the start.
import { readFileSync } from 'node:fs';
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

// The files that the configuration names, and the addresses on which the service listens.
import { readFileSync, statSync } from 'node:fs';
import { type Config, readConfigured } from '../config.ts';
import { readDids } from '../http/access-list.ts';
import type { ListenAddress } from '../http/http-server.ts';
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

/** Returns Unix seconds; NaN if no file is configured, 0 if the file is missing. A backup touches the file after it was checked. */
export function lastBackupAt({ BACKUP_STAMP_FILE: path }: Config): number {
  if (path === undefined) return Number.NaN;
  return (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1000;
}

export function servicePort({ PORT: port, HOST: host }: Config): ListenAddress {
  return { port, host, variables: { port: 'PORT', host: 'HOST' } };
}

export function metricsPort({ METRICS_PORT: port, METRICS_HOST: host }: Config): ListenAddress | undefined {
  return port === undefined ? undefined : { port, host, variables: { port: 'METRICS_PORT', host: 'METRICS_HOST' } };
}

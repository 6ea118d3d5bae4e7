// The limit of open files, of which every connection takes one.
import { existsSync, readFileSync } from 'node:fs';
import { ConfigError } from '../config.ts';

/** The service alone opens some fifty. */
const OPEN_FILES_MIN = 256;
/** Linux has it. */
const LIMITS = '/proc/self/limits';

/** Throws ConfigError. Otherwise a start would fail in one of many places, or at the first connections. */
export function requireOpenFiles(): void {
  if (!existsSync(LIMITS)) return;
  // Node has raised the soft limit to the hard one.
  const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync(LIMITS, 'latin1')) ?? [];
  if (limit === undefined || Number(limit) >= OPEN_FILES_MIN) return;
  const problem = `the limit of open files is ${limit}, and must be at least ${OPEN_FILES_MIN}: raise it (ulimit -n, LimitNOFILE)`;
  throw new ConfigError([{ variable: null, problem }]);
}

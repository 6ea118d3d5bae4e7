// What `chambers doctor` says of a service that is to be started: the checks of the start, all of them.
import { ConfigError, readConfig } from '../config.ts';
import { EXIT_FAILURE } from '../process/exit.ts';
import { allFindings } from '../service/checks/checks.ts';
import { type Finding, ofConfiguration, ok } from '../service/checks/finding.ts';
import { isOurs } from './running-service.ts';

/** The findings for a service with this environment; if its configuration is invalid, only those about it. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<readonly Finding[]> {
  try {
    const config = readConfig(env);
    const running = await findRunning(config);
    const findings = await allFindings({ env, config, time: Date.now, isRunning: running !== undefined });
    return running === undefined ? findings : [...findings, running];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return ofConfiguration(error);
  }
}

/** A service that runs has the ports and the database. */
async function findRunning({
  HOST,
  PORT,
}: {
  readonly HOST: string;
  readonly PORT: number;
}): Promise<Finding | undefined> {
  if (PORT === 0) return undefined;
  const host = ANY_ADDRESS[HOST] ?? (HOST.includes(':') ? `[${HOST}]` : HOST);
  const url = `http://${host}:${PORT}`;
  return (await isOurs(url))
    ? ok('ports', `a service runs at ${url}: whether the ports are free was not tried`)
    : undefined;
}

const ANY_ADDRESS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };

/** That of a start: of the first problem that stops it. */
export function exitCodeOf(findings: readonly Finding[]): number {
  const stopping = findings.find(({ exitCode }) => exitCode !== 0);
  if (stopping !== undefined) return stopping.exitCode;
  return findings.some(({ level }) => level === 'problem') ? EXIT_FAILURE : 0;
}

// `chambers doctor`: runs all checks of a start.
import { type Config, ConfigError, readConfig } from '../config.ts';
import { EXIT_FAILURE } from '../process/exit.ts';
import { allFindings } from '../service/checks/checks.ts';
import { type Finding, ofConfiguration, ok } from '../service/checks/finding.ts';
import { isOurs } from './running-service.ts';

/** Returns the findings; if the configuration is invalid, only those about it. */
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

/** A running service holds the ports and the database. */
async function findRunning({ HOST, PORT }: Config): Promise<Finding | undefined> {
  if (PORT === 0) return undefined;
  const host = ANY_ADDRESS[HOST] ?? (HOST.includes(':') ? `[${HOST}]` : HOST);
  const url = `http://${host}:${PORT}`;
  return (await isOurs(url)) ? ok('ports', `a service is running at ${url}: the ports were not tried`) : undefined;
}

const ANY_ADDRESS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };

/** The exit code of a start: that of the first problem that stops it. */
export function exitCodeOf(findings: readonly Finding[]): number {
  const stopping = findings.find(({ exitCode }) => exitCode !== 0);
  if (stopping !== undefined) return stopping.exitCode;
  return findings.some(({ level }) => level === 'problem') ? EXIT_FAILURE : 0;
}

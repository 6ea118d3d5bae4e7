// `chambers doctor`: runs all start-up checks.
import { type Config, ConfigError, readConfig } from '../config.ts';
import { EXIT_FAILURE } from '../process/exit.ts';
import { allFindings } from '../service/checks/checks.ts';
import { configurationFindings, type Finding, ok } from '../service/checks/finding.ts';
import { isChamberService } from './running-service.ts';

/** Returns the findings; if the configuration is invalid, only the findings about the configuration. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<readonly Finding[]> {
  try {
    const config = readConfig(env);
    const running = await findRunning(config);
    const findings = await allFindings({ env, config, time: Date.now, isRunning: running !== undefined });
    return running === undefined ? findings : [...findings, running];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return configurationFindings(error);
  }
}

/** The port and database checks depend on whether a service is running, because it holds both. */
async function findRunning({ HOST, PORT }: Config): Promise<Finding | undefined> {
  if (PORT === 0) return undefined;
  const host = ANY_ADDRESS[HOST] ?? (HOST.includes(':') ? `[${HOST}]` : HOST);
  const url = `http://${host}:${PORT}`;
  return (await isChamberService(url))
    ? ok('ports', `a service is running at ${url}: the ports were not tested`)
    : undefined;
}

const ANY_ADDRESS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };

/** Returns the exit code that a start would have: the code of the first finding that prevents it. */
export function exitCodeOf(findings: readonly Finding[]): number {
  const stopping = findings.find(({ exitCode }) => exitCode !== 0);
  if (stopping !== undefined) return stopping.exitCode;
  return findings.some(({ level }) => level === 'problem') ? EXIT_FAILURE : 0;
}

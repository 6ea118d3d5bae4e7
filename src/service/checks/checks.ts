// The checks before a start. The start runs them before it opens or creates anything, and stops at the first problem; doctor runs all of
// them. So both agree, and a failed start changes nothing. Only doctor checks for problems that the running service reports itself.
import type { Logger } from 'pino';
import { ConfigError, type ConfigProblem } from '../../config.ts';
import { EXIT_CONFIG } from '../../process/exit.ts';
import { checkChain, checkChamberIds } from './chain.ts';
import type { Check, CheckInput, CheckState, ProbedChain } from './check.ts';
import { checkClock } from './clock.ts';
import { checkDatabase, checkSpace } from './database.ts';
import { describeFinding, type Finding } from './finding.ts';
import { checkKeys, checkPublished } from './keys.ts';
import { checkPorts } from './ports.ts';
import { checkFiles, checkFlags, checkNames, checkOpenFiles, checkWithholdings, showSettings } from './settings.ts';

const CHECKS: readonly Check[] = [
  checkNames,
  checkOpenFiles,
  checkFiles,
  checkFlags,
  showSettings,
  checkDatabase,
  checkSpace,
  checkKeys,
  checkPublished,
  checkClock,
  checkChain,
  checkChamberIds,
  checkPorts,
];

async function* runChecks(checks: readonly Check[], state: CheckState): AsyncGenerator<readonly Finding[]> {
  for (const check of checks) yield await check(state);
}

function initialState(input: CheckInput): CheckState {
  return { ...input, log: undefined, isLogReadable: false, chain: undefined };
}

export async function allFindings(input: CheckInput): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  for await (const findings of runChecks([...CHECKS, checkWithholdings], initialState(input))) found.push(...findings);
  return found;
}

/**
 * Runs the checks and returns the checked chain. Logs findings that do not stop a start. Throws ConfigError if a retry would fail too,
 * otherwise Error.
 */
export async function requireStartable(input: CheckInput, logger: Logger): Promise<ProbedChain | undefined> {
  const state = initialState(input);
  const tolerable: Finding[] = [];
  for await (const findings of runChecks(CHECKS, state)) {
    throwStoppingFindings(findings);
    tolerable.push(...findings.filter(({ level }) => level !== 'ok'));
  }
  for (const { variable, detail } of tolerable) logger.warn({ variable }, detail);
  return state.chain;
}

export function throwStoppingFindings(findings: readonly Finding[]): void {
  const stopping = findings.filter(({ exitCode }) => exitCode !== 0);
  if (stopping.length === 0) return;
  if (stopping.some(({ exitCode }) => exitCode !== EXIT_CONFIG))
    throw new Error(stopping.map(describeFinding).join('\n'));
  throw new ConfigError(
    stopping.map(({ variable, detail }) => ({ variable: variable as ConfigProblem['variable'], problem: detail })),
  );
}

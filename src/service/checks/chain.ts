// Checks the chain: its id, whether the contracts accept the relayer, and whether the next chamber ids are free. A service without a chain
// does not load viem.

import { ConfigError } from '../../config.ts';
import { anvilBinary } from '../../dev-chain/anvil.ts';
import { EXIT_FAILURE } from '../../process/exit.ts';
import { messageOf } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { Check, ProbedChain } from './check.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

export const checkChain: Check = async (state) => {
  const { config, log, time } = state;
  const { RPC_URL, CHAIN, SIGNATURE_MAX_SKEW_SECONDS } = config;
  if (CHAIN === 'none') return [ok('chain', 'none: chambers stay in ALLOCATE_REVEAL')];
  if (RPC_URL === undefined) return checkAnvil();
  try {
    const [{ configuredChain }, { probe }] = await Promise.all([
      import('../chain-settings.ts'),
      import('./chain-probe.ts'),
    ]);
    const probed = await probe(configuredChain(config, RPC_URL), log?.chainId);
    state.chain = probed;
    const { findings, blockAt } = probed;
    return blockAt > time() + SIGNATURE_MAX_SKEW_SECONDS * 1000
      ? [...findings, behindBlock(blockAt, time())]
      : findings;
  } catch (error) {
    // checkFiles has reported the error.
    if (error instanceof ConfigError) return [];
    throw error;
  }
};

function behindBlock(blockAt: Millis, now: Millis): Finding {
  return problem('clock', `the chain's newest block is ${Math.round((blockAt - now) / 1000)} s ahead of this clock`);
}

function checkAnvil(): readonly Finding[] {
  try {
    anvilBinary();
    return [ok('chain', 'a development chain, started with the service; set RPC_URL to use another chain')];
  } catch (error) {
    return [problem('chain', messageOf(error), { variable: 'RPC_URL', exitCode: EXIT_FAILURE })];
  }
}

/** The search ends after this many consecutive free ids. */
const FREE_IDS_IN_A_ROW = 10;
/** The same for a copy, which lacks chambers that were created after it was made. */
const FREE_IDS_IN_A_ROW_OF_COPY = 100;
const IDS_PROBED_MAX = 1_000;
const IDS_NAMED_MAX = 10;

/** Only one root can be committed per id, so chambers whose ids have a root in the registry can never be committed. */
export const checkChamberIds: Check = async ({ config, log, isLogReadable, chain }) => {
  if (!chain?.isReached || hasMismatch(chain) || !isLogReadable) return [];
  const from = Math.max((log?.lastChamberId ?? 0) + 1, config.CHAMBER_ID_MIN);
  const isCopy = log?.isCopy === true;
  try {
    const { committedIds } = await import('../../relayer/identity.ts');
    const committed = (ids: readonly number[]) => committedIds(chain.config, ids);
    const taken = await takenFrom(from, isCopy ? FREE_IDS_IN_A_ROW_OF_COPY : FREE_IDS_IN_A_ROW, committed);
    const ended = isCopy ? await committed(log.openChamberIds) : [];
    return [
      ...(taken.length > 0 ? [warning('chain', describeTaken(taken, isCopy), 'CHAMBER_ID_MIN')] : []),
      ...(ended.length > 0 ? [warning('chain', describeEnded(ended))] : []),
    ];
  } catch (error) {
    return [
      warning('chain', `cannot find out which chamber ids have a root in the registry: ${messageOf(error)}`, 'RPC_URL'),
    ];
  }
};

function hasMismatch({ findings }: ProbedChain): boolean {
  return findings.some(({ level }) => level === 'problem');
}

async function takenFrom(
  from: number,
  inARow: number,
  committed: (ids: readonly number[]) => Promise<readonly number[]>,
): Promise<readonly number[]> {
  const taken: number[] = [];
  for (let next = from; next < from + IDS_PROBED_MAX; next += inARow) {
    const ids = Array.from({ length: inARow }, (_, index) => next + index);
    const found = await committed(ids);
    if (found.length === 0) break;
    taken.push(...found);
  }
  return taken;
}

function describeTaken(taken: readonly number[], isCopy: boolean): string {
  const why = isCopy ? 'because it is a copy' : 'so another service uses or has used these contracts';
  const lowest = (taken.at(-1) ?? 0) + 1;
  return `the registry has roots of chambers ${named(taken)} that this log lacks, ${why}: new chambers with these ids could not be committed, so set it to ${lowest} or more`;
}

function describeEnded(ended: readonly number[]): string {
  return `the registry has roots of chambers ${named(ended)}, which are open in this copy of the log: chambers that lack moves of the original can’t be committed`;
}

function named(ids: readonly number[]): string {
  const shown = ids.slice(0, IDS_NAMED_MAX).join(', ');
  return ids.length > IDS_NAMED_MAX ? `${shown} … ${ids.at(-1)}` : shown;
}

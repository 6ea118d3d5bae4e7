// Checks the chain's identity: its id, code at the contracts' addresses, and contracts that accept the relayer. The service does not start on a
// wrong chain, and the relayer stops on one.
import { type Address, type Hex, hexToBigInt } from 'viem';
import type { Millis } from '../vocabulary/values.ts';
import { type Block, hasCode, readBalance, readCall, readChainId, readHead } from './chain-client.ts';
import type { RelayerConfig, RelayerContext } from './context.ts';
import type { FeeSettings } from './fees.ts';
import { openRpc, type Rpc, RpcError } from './rpc.ts';
import { mergeReports, probeGas, probeSending, type SendingReport } from './sending.ts';
import { findWiringFaults, type Mismatch, type Wiring } from './wiring.ts';

export interface ChainReport {
  /** Undefined if the RPC is unavailable. */
  readonly chainId: number | undefined;
  /** In wei; undefined if the RPC is unavailable. */
  readonly balance: bigint | undefined;
  /** The time of the newest block; 0 if the RPC is unavailable. */
  readonly blockAt: Millis;
  /** Problems that prevent the start. */
  readonly mismatches: readonly Mismatch[];
  /** Problems that may be temporary: an unavailable RPC, an account without funds, fees above the limit. */
  readonly warnings: readonly Mismatch[];
}

const PROBE_TIMEOUT_MILLIS = 3_000;

type ProbedConfig = Omit<RelayerConfig, 'privateKey' | 'confirmations' | 'feeBumpSeconds'>;

export async function probeChain(config: ProbedConfig, relayer: Address): Promise<ChainReport> {
  const rpc = openRpc(config.rpcUrl, { timeoutMillis: PROBE_TIMEOUT_MILLIS });
  try {
    const [chainId, balance, head] = await Promise.all([readChainId(rpc), readBalance(rpc, relayer), readHead(rpc)]);
    const problems = await findProblems(rpc, { chainId, head }, { ...config, relayer });
    const isSound = problems.mismatches.length === 0;
    const gas = isSound ? [await probeGas(rpc, head, { ...config, relayer })] : [];
    const { mismatches, warnings } = mergeReports(problems, ...gas);
    const problem = `relayer account ${relayer} has no funds for gas on chain ${chainId}`;
    const noFunds = balance === 0n ? [{ variable: 'RELAYER_PRIVATE_KEY', problem }] : [];
    return { chainId, balance, blockAt: head.at, mismatches, warnings: [...noFunds, ...warnings] };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const warnings = [{ variable: 'RPC_URL', problem: error.message }];
    return { chainId: undefined, balance: undefined, blockAt: 0, mismatches: [], warnings };
  } finally {
    rpc.close();
  }
}

/** Resolves to the ids that have a root in the registry. Rejects with RpcError. */
export async function committedIds(
  { rpcUrl, contracts, registryAddress: to }: ProbedConfig,
  ids: readonly number[],
): Promise<readonly number[]> {
  const rpc = openRpc(rpcUrl, { timeoutMillis: PROBE_TIMEOUT_MILLIS });
  try {
    const roots = await Promise.all(
      ids.map(async (id) => contracts.readRoot(await readCall(rpc, { to, data: contracts.rootCall(id) }))),
    );
    return ids.filter((_, index) => hexToBigInt(roots[index] ?? '0x0') !== 0n);
  } finally {
    rpc.close();
  }
}

interface Expected extends Wiring, FeeSettings {
  readonly chainId?: number | undefined;
}

interface ProbedChain {
  readonly chainId: number;
  readonly head: Block;
}

async function findProblems(rpc: Rpc, { chainId, head }: ProbedChain, expected: Expected): Promise<SendingReport> {
  const missing = await findMissing(rpc, chainId, expected);
  if (missing.length > 0) return { mismatches: missing, warnings: [] };
  const faults = await findWiringFaults(rpc, expected);
  return mergeReports({ mismatches: faults, warnings: [] }, await probeSending(rpc, head, expected));
}

/** Reports a wrong chain id, or addresses without code. */
async function findMissing(rpc: Rpc, chainId: number, expected: Expected): Promise<readonly Mismatch[]> {
  if (chainId !== (expected.chainId ?? chainId)) {
    return [{ variable: 'CHAIN_ID', problem: `the RPC serves chain ${chainId}, expected ${expected.chainId}` }];
  }
  const contracts = [
    ['CHAMBER_REGISTRY_ADDRESS', expected.registryAddress],
    ['IDEA_FACTORY_ADDRESS', expected.factoryAddress],
  ] as const;
  const haveCode = await Promise.all(contracts.map(([, address]) => hasCode(rpc, address)));
  return contracts
    .filter((_, index) => !haveCode[index])
    .map(([variable, address]) => ({ variable, problem: `no contract at ${address} on chain ${chainId}` }));
}

export interface VerifiedChain {
  /** Undefined before the first successful check. */
  chainId: number | undefined;
  /** The newest block in which the contracts had code. */
  verifiedHead: Hex | undefined;
}

/**
 * Checks every new block, because a chain may come back empty with the same id, and raises an alert on a mismatch. Simulates the calls
 * until they have been accepted once. `loggedChainId` is the chain id of the log's transactions, if there are any.
 */
export async function isExpectedChain(
  { chainId, head, loggedChainId }: { chainId: number; head: Block; loggedChainId: number | undefined },
  { rpc, config, account, alerts }: RelayerContext,
  verified: VerifiedChain,
): Promise<boolean> {
  if (chainId === verified.chainId && head.hash === verified.verifiedHead) return true;
  const known = [verified.chainId, config.chainId, loggedChainId];
  const other = known.find((expected) => expected !== undefined && expected !== chainId);
  const expected = { ...config, relayer: account.address, chainId: other };
  const [mismatch] =
    verified.chainId === undefined
      ? (await findProblems(rpc, { chainId, head }, expected)).mismatches
      : await findMissing(rpc, chainId, expected);
  if (mismatch === undefined) {
    alerts.clear('chain');
    verified.chainId = chainId;
  } else {
    alerts.raise('chain', `${mismatch.problem} (${mismatch.variable})`);
  }
  verified.verifiedHead = mismatch === undefined ? head.hash : undefined;
  return mismatch === undefined;
}

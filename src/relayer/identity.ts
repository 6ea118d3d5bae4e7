// The chain's identity: its id, and code at the contracts' addresses. The service does not start on a wrong chain, and the
// relayer halts on one.
import type { Address, Hex } from 'viem';
import { type Block, hasCode, readBalance, readChainId } from './chain-client.ts';
import type { RelayerContext } from './context.ts';
import type { RelayerConfig } from './port.ts';
import { openRpc, type Rpc, RpcError } from './rpc.ts';
import { openAccount } from './transactions.ts';

/** What is wrong and which variable fixes it, for people. */
export interface Mismatch {
  readonly variable:
    | 'RPC_URL'
    | 'CHAIN_ID'
    | 'CHAMBER_REGISTRY_ADDRESS'
    | 'IDEA_FACTORY_ADDRESS'
    | 'RELAYER_PRIVATE_KEY';
  readonly problem: string;
}

export interface ChainReport {
  readonly isReachable: boolean;
  readonly chainId: number | undefined;
  readonly relayer: Address;
  /** Wei; undefined when the RPC is unavailable. */
  readonly balance: bigint | undefined;
  /** Problems that prevent the start. */
  readonly mismatches: readonly Mismatch[];
  /** Problems that may pass: an RPC that is unavailable, an account without funds. */
  readonly warnings: readonly Mismatch[];
}

const PROBE_TIMEOUT_MILLIS = 3_000;

/** Checks the chain once, for the start and for `doctor`. Throws only when the private key is invalid. */
export async function probeChain(config: RelayerConfig, timeoutMillis = PROBE_TIMEOUT_MILLIS): Promise<ChainReport> {
  const relayer = openAccount(config.privateKey).address;
  const rpc = openRpc(config.rpcUrl, timeoutMillis);
  try {
    const [chainId, balance] = await Promise.all([readChainId(rpc), readBalance(rpc, relayer)]);
    const mismatches = await findMismatches(rpc, chainId, config);
    const problem = `relayer account ${relayer} has no funds for gas on chain ${chainId}`;
    const warnings: Mismatch[] = balance === 0n ? [{ variable: 'RELAYER_PRIVATE_KEY', problem }] : [];
    return { isReachable: true, chainId, relayer, balance, mismatches, warnings };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const warnings: Mismatch[] = [{ variable: 'RPC_URL', problem: error.message }];
    return { isReachable: false, chainId: undefined, relayer, balance: undefined, mismatches: [], warnings };
  } finally {
    rpc.close();
  }
}

async function findMismatches(
  rpc: Rpc,
  chainId: number,
  { chainId: expected, registryAddress, factoryAddress }: RelayerConfig,
): Promise<readonly Mismatch[]> {
  if (expected !== undefined && expected !== chainId) {
    return [{ variable: 'CHAIN_ID', problem: `the RPC serves chain ${chainId}, expected ${expected}` }];
  }
  const [registry, factory] = await Promise.all([hasCode(rpc, registryAddress), hasCode(rpc, factoryAddress)]);
  return [
    ...(registry ? [] : [noCode('CHAMBER_REGISTRY_ADDRESS', registryAddress, chainId)]),
    ...(factory ? [] : [noCode('IDEA_FACTORY_ADDRESS', factoryAddress, chainId)]),
  ];
}

function noCode(variable: Mismatch['variable'], address: Address, chainId: number): Mismatch {
  return { variable, problem: `no contract at ${address} on chain ${chainId}` };
}

/** The last check that succeeded. */
export interface VerifiedChain {
  /** The chain that every response must come from; undefined before the first check. */
  chainId: number | undefined;
  /** The newest block at which the contracts had code. */
  verifiedHead: Hex | undefined;
}

interface ReportedChain {
  readonly chainId: number;
  readonly head: Block;
  /** The chain of the log's transactions; undefined where it has none. */
  readonly loggedChainId: number | undefined;
}

/** Checked again at every block, because a chain may come back empty under the same id. Raises an alert when wrong. */
export async function isExpectedChain(
  { chainId, head, loggedChainId }: ReportedChain,
  { rpc, config, alerts }: RelayerContext,
  verified: VerifiedChain,
): Promise<boolean> {
  if (chainId === verified.chainId && head.hash === verified.verifiedHead) return true;
  verified.verifiedHead = undefined;
  const known = [verified.chainId, config.chainId, loggedChainId];
  const other = known.find((expected) => expected !== undefined && expected !== chainId);
  const [mismatch] = await findMismatches(rpc, chainId, { ...config, chainId: other ?? chainId });
  if (mismatch !== undefined) {
    alerts.raise('chain', `${mismatch.problem} (${mismatch.variable})`);
    return false;
  }
  alerts.clear('chain');
  verified.chainId = chainId;
  verified.verifiedHead = head.hash;
  return true;
}

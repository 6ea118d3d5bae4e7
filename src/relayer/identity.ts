// The chain's identity: its id, and code at the contracts' addresses. The service does not start on a wrong chain, and the
// relayer halts on one.
import type { Address, Hex } from 'viem';
import { type Block, hasCode, readBalance, readChainId } from './chain-client.ts';
import type { RelayerConfig, RelayerContext } from './context.ts';
import { openRpc, type Rpc, RpcError } from './rpc.ts';
import { openAccount } from './transactions.ts';

/** What is wrong, for people, and which variable fixes it. */
export interface Mismatch {
  readonly variable: string;
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
export async function probeChain(config: RelayerConfig): Promise<ChainReport> {
  const relayer = openAccount(config.privateKey).address;
  const rpc = openRpc(config.rpcUrl, PROBE_TIMEOUT_MILLIS);
  try {
    const [chainId, balance] = await Promise.all([readChainId(rpc), readBalance(rpc, relayer)]);
    const mismatches = await findMismatches(rpc, chainId, config);
    const problem = `relayer account ${relayer} has no funds for gas on chain ${chainId}`;
    const warnings = balance === 0n ? [{ variable: 'RELAYER_PRIVATE_KEY', problem }] : [];
    return { isReachable: true, chainId, relayer, balance, mismatches, warnings };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const warnings = [{ variable: 'RPC_URL', problem: error.message }];
    return { isReachable: false, chainId: undefined, relayer, balance: undefined, mismatches: [], warnings };
  } finally {
    rpc.close();
  }
}

async function findMismatches(rpc: Rpc, chainId: number, expected: RelayerConfig): Promise<readonly Mismatch[]> {
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

/** The last check that succeeded. */
export interface VerifiedChain {
  /** The chain that every response must come from; undefined before the first check. */
  chainId: number | undefined;
  /** The newest block at which the contracts had code. */
  verifiedHead: Hex | undefined;
}

/**
 * Checked again at every block, because a chain may come back empty under the same id. Raises an alert when wrong.
 * `loggedChainId` is the chain of the log's transactions; undefined where it has none.
 */
export async function isExpectedChain(
  { chainId, head, loggedChainId }: { chainId: number; head: Block; loggedChainId: number | undefined },
  { rpc, config, alerts }: RelayerContext,
  verified: VerifiedChain,
): Promise<boolean> {
  if (chainId === verified.chainId && head.hash === verified.verifiedHead) return true;
  const known = [verified.chainId, config.chainId, loggedChainId];
  const other = known.find((expected) => expected !== undefined && expected !== chainId);
  const [mismatch] = await findMismatches(rpc, chainId, { ...config, chainId: other });
  if (mismatch === undefined) {
    alerts.clear('chain');
    verified.chainId = chainId;
  } else {
    alerts.raise('chain', `${mismatch.problem} (${mismatch.variable})`);
  }
  verified.verifiedHead = mismatch === undefined ? head.hash : undefined;
  return mismatch === undefined;
}

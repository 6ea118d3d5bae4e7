// Whether the RPC leads to the right chain: its id, and code at the addresses. The service refuses to start when it does not.
import type { Address } from 'viem';
import { hasCode, readBalance, readChainId } from './chain.ts';
import type { RelayerConfig } from './port.ts';
import { openRpc, type Rpc, RpcError } from './rpc.ts';
import { openAccount } from './signer.ts';

/** What is wrong and which variable mends it, for people. */
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
  /** Wei; undefined when the RPC is away. */
  readonly balance: bigint | undefined;
  /** Problems that stop the start; an RPC that is away and an empty balance are none: both may pass. */
  readonly mismatches: readonly Mismatch[];
  /** What else is not as it should be. */
  readonly warnings: readonly Mismatch[];
}

const PROBE_TIMEOUT_MILLIS = 3_000;

/** Looks at the chain once, for the start and for `doctor`. Throws only when the private key is none. */
export async function probeChain(config: RelayerConfig, timeoutMillis = PROBE_TIMEOUT_MILLIS): Promise<ChainReport> {
  const relayer = openAccount(config.privateKey).address;
  const rpc = openRpc(config.rpcUrl, timeoutMillis);
  try {
    const [chainId, balance] = await Promise.all([readChainId(rpc), readBalance(rpc, relayer)]);
    const mismatches = await findMismatches(rpc, chainId, config);
    const problem = `the relayer ${relayer} has no gas money on chain ${chainId}`;
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

export async function findMismatches(
  rpc: Rpc,
  chainId: number,
  { chainId: expected, registryAddress, factoryAddress }: Omit<RelayerConfig, 'privateKey'>,
): Promise<readonly Mismatch[]> {
  if (expected !== undefined && expected !== chainId) {
    return [{ variable: 'CHAIN_ID', problem: `the RPC serves chain ${chainId} instead of ${expected}` }];
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

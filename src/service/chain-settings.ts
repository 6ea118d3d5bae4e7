// Reads the chain's settings from the configuration.
import { type Config, readConfigured } from '../config.ts';
import type { RelayerConfig } from '../relayer/context.ts';
import { type ContractProfile, quorumProfile, REFERENCE } from '../relayer/contracts.ts';
import { readQuorumSettings } from '../relayer/quorum-settings.ts';
import type { Hex } from '../vocabulary/values.ts';

/** readConfig requires the addresses and the key if RPC_URL is set. Throws ConfigError if CONTRACTS_FILE is invalid. */
export function configuredChain(config: Config, rpcUrl: string): RelayerConfig {
  return {
    rpcUrl,
    chainId: config.CHAIN_ID,
    contracts: configuredContracts(config),
    registryAddress: config.CHAMBER_REGISTRY_ADDRESS as Hex,
    factoryAddress: config.IDEA_FACTORY_ADDRESS as Hex,
    privateKey: config.RELAYER_PRIVATE_KEY as Hex,
    confirmations: config.CONFIRMATIONS,
    ...feeSettings(config),
  };
}

export function feeSettings({ FEE_BUMP_SECONDS, FEE_MAX_GWEI, FEE_TIP_GWEI }: Config) {
  return { feeBumpSeconds: FEE_BUMP_SECONDS, feeMaxWei: FEE_MAX_GWEI, tipWei: FEE_TIP_GWEI };
}

/** readConfig requires the file for the quorum contracts. Throws ConfigError if the file is invalid. */
export function configuredContracts({
  CONTRACTS,
  CONTRACTS_FILE = '',
}: Pick<Config, 'CONTRACTS' | 'CONTRACTS_FILE'>): ContractProfile {
  if (CONTRACTS !== 'quorum') return REFERENCE;
  return readConfigured('CONTRACTS_FILE', () => quorumProfile(readQuorumSettings(CONTRACTS_FILE)));
}

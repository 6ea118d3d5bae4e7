// The chain that the service commits to: the one behind RPC_URL, or its own development chain.
import type { Logger } from 'pino';
import { type Config, ConfigError, readConfigured } from '../config.ts';
import { type Forum, merklePreview } from '../forum/forum.ts';
import type { ChainStatus } from '../http/context.ts';
import { StreamDamaged } from '../log/damage.ts';
import { type Lease, SOLE_LEASE } from '../log/store.ts';
import type { RelayerConfig, RelayerForum } from '../relayer/context.ts';
import { type ContractProfile, quorumProfile, REFERENCE } from '../relayer/contracts.ts';
import { type DevChain, startDevChain } from '../relayer/dev-chain.ts';
import { probeChain } from '../relayer/identity.ts';
import { readQuorumSettings } from '../relayer/quorum-settings.ts';
import { Relayer } from '../relayer/relayer.ts';
import { TokenReader } from '../relayer/token-reader.ts';
import { openAccount } from '../relayer/transactions.ts';
import type { Hex } from '../vocabulary/values.ts';

export interface ChainLink {
  /** The name for operators. */
  readonly name: string;
  readonly status: () => ChainStatus;
  /** Begins to relay. Called once the service listens: a service that does not start takes the lease from no other. */
  readonly start: () => void;
  /** Stops the relayer between two steps, then the development chain. */
  readonly stop: () => Promise<void>;
}

interface ChainOptions {
  readonly config: Config;
  readonly forum: Forum;
  readonly logger: Logger;
}

/** Throws when the chain is reached and contradicts the configuration or the database. */
export async function openChain(options: ChainOptions): Promise<ChainLink> {
  const { config, logger } = options;
  const { RPC_URL: rpcUrl } = config;
  if (rpcUrl !== undefined)
    return openRelayer(
      options,
      readConfigured('CONTRACTS_FILE', () => configuredChain(config, rpcUrl)),
    );
  const stateFile = config.DATABASE_PATH === ':memory:' ? undefined : `${config.DATABASE_PATH}.chain.json`;
  const devChain = await startDevChain({ stateFile, chainId: config.CHAIN_ID, logger });
  try {
    const own = { ...devChain.config, ...feeSettings(config), isOwnNode: true };
    return await openRelayer(options, own, devChain);
  } catch (error) {
    await devChain.stop();
    throw error;
  }
}

async function openRelayer(
  { forum, logger }: ChainOptions,
  wanted: RelayerConfig,
  devChain?: DevChain,
): Promise<ChainLink> {
  const config = await requireChain(wanted, forum, logger);
  let lease: Lease | undefined;
  const reader = new TokenReader({ rpcUrl: config.rpcUrl, chainId: config.chainId });
  forum.useChain(reader);
  const relayer = new Relayer({ config, forum: relayerForum(forum, () => lease), logger });
  return {
    name: `${devChain === undefined ? '' : 'development chain '}${config.chainId ?? 'not known yet'}`,
    status: () => statusOf(relayer, config, devChain),
    start: () => {
      lease ??= forum.store.nodes?.lease('relayer') ?? SOLE_LEASE;
      relayer.start();
    },
    stop: async () => {
      reader.close();
      await relayer.stop();
      await lease?.release();
      await devChain?.stop();
    },
  };
}

/** The name under which the log remembers the chain that it was first used with. */
const CHAIN_ID = 'chain_id';

/** The chain first used with a database is stored in it, and another one is rejected. */
async function requireChain(wanted: RelayerConfig, { store: { meta } }: Forum, logger: Logger): Promise<RelayerConfig> {
  const remembered = await meta.recall(CHAIN_ID);
  const chainId = wanted.chainId ?? (remembered === undefined ? undefined : Number(remembered));
  if (remembered !== undefined && chainId !== Number(remembered)) {
    const problem = `the database was first used with chain ${remembered}, not ${chainId}`;
    throw new ConfigError([{ variable: 'CHAIN_ID', problem }]);
  }
  const report = await probeChain({ ...wanted, chainId }, openAccount(wanted.privateKey).address);
  if (report.mismatches.length > 0) {
    throw new Error(report.mismatches.map(({ variable, problem }) => `${variable}: ${problem}`).join('\n'));
  }
  for (const warning of report.warnings) logger.warn(warning, 'the chain may not take transactions');
  if (report.chainId !== undefined) await meta.remember(CHAIN_ID, String(report.chainId));
  return { ...wanted, chainId: report.chainId ?? chainId };
}

/**
 * readConfig requires addresses and key wherever it takes an RPC_URL, and checks their form. Throws when the file of
 * CONTRACTS_FILE is wrong.
 */
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

function feeSettings({ FEE_BUMP_SECONDS, FEE_MAX_GWEI, FEE_TIP_GWEI }: Config) {
  return { feeBumpSeconds: FEE_BUMP_SECONDS, feeMaxWei: FEE_MAX_GWEI, tipWei: FEE_TIP_GWEI };
}

/** readConfig requires the file with the quorum contracts. */
export function configuredContracts({
  CONTRACTS,
  CONTRACTS_FILE = '',
}: Pick<Config, 'CONTRACTS' | 'CONTRACTS_FILE'>): ContractProfile {
  return CONTRACTS === 'quorum' ? quorumProfile(readQuorumSettings(CONTRACTS_FILE)) : REFERENCE;
}

export function relayerForum(forum: Forum, lease: () => Lease | undefined): RelayerForum {
  return {
    now: () => forum.now(),
    lease: () => lease()?.token,
    unsettledChambers: (limit) => forum.store.lists.listUnsettled(forum.now(), limit),
    settledChambers: (limit) => forum.store.lists.listSettled(limit),
    chamber: async (chamberId) => {
      // A damaged chamber is not relayed and does not delay the others.
      const chamber = await forum.chamber(chamberId).catch((error: unknown) => {
        if (error instanceof StreamDamaged) return undefined;
        throw error;
      });
      return chamber && { state: chamber.state, root: merklePreview(chamber).root };
    },
    record: async (chamberId, fact, basis) => {
      await forum.submit({ operation: 'record', chamberId, fact, basis });
    },
  };
}

function statusOf(relayer: Relayer, config: RelayerConfig, devChain: DevChain | undefined): ChainStatus {
  const { ok, ...rest } = relayer.status();
  const problem = devChain?.problem;
  const state = problem === undefined ? rest : { ...rest, reason: problem };
  const { chainId, registryAddress, factoryAddress } = config;
  // Only the development chain's own address is public: a configured one may hold an API key.
  const address = devChain === undefined ? {} : { rpcUrl: devChain.config.rpcUrl };
  return {
    ok: ok && problem === undefined,
    relayer: state,
    spending: relayer.spending(),
    details: { chain: { chainId: chainId ?? null, registryAddress, factoryAddress, ...address, relayer: state } },
  };
}

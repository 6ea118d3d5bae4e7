// The chain that the service uses: the one behind RPC_URL, or a development chain.
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { type DevChain, startDevChain } from '../dev-chain/dev-chain.ts';
import { type Forum, merklePreview } from '../forum/forum.ts';
import type { ChainStatus } from '../http/context.ts';
import { StreamDamaged } from '../log/damage.ts';
import { CHAIN_ID } from '../log/existing-log.ts';
import { type Lease, SOLE_LEASE } from '../log/store.ts';
import type { RelayerConfig, RelayerForum } from '../relayer/context.ts';
import { Relayer } from '../relayer/relayer.ts';
import { TokenReader } from '../relayer/token-reader.ts';
import { feeSettings } from './chain-settings.ts';
import { probe } from './checks/chain-probe.ts';
import type { ProbedChain } from './checks/check.ts';
import { throwStoppingFindings } from './checks/checks.ts';

export interface ChainLink {
  readonly name: string;
  readonly status: () => ChainStatus;
  /** Starts the relayer. Called once the service listens, so that a failed start does not take the lease from another node. */
  readonly start: () => void;
  /** Stops the relayer after its current step, then the development chain. */
  readonly stop: () => Promise<void>;
}

interface ChainOptions {
  readonly config: Config;
  readonly forum: Forum;
  readonly logger: Logger;
}

/** `checked` is the chain behind RPC_URL after the checks; without it, the development chain is started and checked. */
export async function openChain(options: ChainOptions, checked: ProbedChain | undefined): Promise<ChainLink> {
  if (checked !== undefined) return openRelayer(options, checked);
  const { config, forum, logger } = options;
  const stateFile = config.DATABASE_PATH === ':memory:' ? undefined : `${config.DATABASE_PATH}.chain.json`;
  const devChain = await startDevChain({ stateFile, chainId: config.CHAIN_ID, logger });
  try {
    const remembered = await forum.store.meta.recall(CHAIN_ID);
    const own = { ...devChain.config, ...feeSettings(config), isSingleNode: true };
    const probed = await probe(own, remembered === undefined ? undefined : Number(remembered));
    throwStoppingFindings(probed.findings);
    return await openRelayer(options, probed, devChain);
  } catch (error) {
    await devChain.stop();
    throw error;
  }
}

async function openRelayer(
  { forum, logger }: ChainOptions,
  { config, isReached }: ProbedChain,
  devChain?: DevChain,
): Promise<ChainLink> {
  // From now on, other chains are rejected.
  if (isReached) await forum.store.meta.remember(CHAIN_ID, String(config.chainId));
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
  // Only the development chain's address is public: a configured URL may contain an API key.
  const address = devChain === undefined ? {} : { rpcUrl: devChain.config.rpcUrl };
  return {
    ok: ok && problem === undefined,
    relayer: state,
    spending: relayer.spending(),
    details: { chain: { chainId: chainId ?? null, registryAddress, factoryAddress, ...address, relayer: state } },
  };
}

// The environment of relayer tests: a development chain, a forum in memory, and relayers to start and stop.
import { encodeEventTopics, type Hex, parseTransaction } from 'viem';
import { expect } from 'vitest';
import { startDevChain } from '../../src/dev-chain/dev-chain.ts';
import { type Logs, readLogs, sendRaw } from '../../src/relayer/chain-client.ts';
import type { Logger, RelayerConfig } from '../../src/relayer/context.ts';
import { type ContractProfile, REFERENCE, REGISTRY_ABI } from '../../src/relayer/contracts.ts';
import { Relayer } from '../../src/relayer/relayer.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { openAccount, signTransaction } from '../../src/relayer/transactions.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { atEnd } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { type FaultProxy, openFaultProxy } from './fault-proxy.ts';
import { MemoryForum } from './memory-forum.ts';
import { deployFor } from './owner-account.ts';
import { quorumContracts } from './quorum-file.ts';

export interface RelayerChain {
  /** The default configuration of relayers. */
  readonly config: RelayerConfig & { readonly chainId: number };
  readonly rpc: Rpc;
  /** A proxy in front of the chain, for relayers whose RPC fails. */
  readonly proxy: FaultProxy;
  readonly forum: MemoryForum;
  /** The JSON log lines of chain and relayers. */
  readonly lines: string[];
  /** The relayers' clock: real time plus an offset that the test sets. */
  readonly clock: { ahead: number };
  relayer(changes?: Partial<RelayerConfig>): Relayer;
  /** Switches automatic mining; switching it on mines pending transactions. */
  automine(isOn: boolean): Promise<void>;
  /** Whether this many transactions are pending. */
  inPool(count: number): Promise<boolean>;
}

/** Opens a chain that stops with the test. With `owned`, another owner deploys contracts of this kind. */
export async function openRelayerChain(owned?: ContractProfile['name']): Promise<RelayerChain> {
  const lines: string[] = [];
  const logger = recordingLogger(lines);
  const chain = await startDevChain({ logger });
  const rpc = openRpc(chain.config.rpcUrl);
  const proxy = await openFaultProxy(chain.config.rpcUrl);
  const forum = new MemoryForum();
  const clock = { ahead: 0 };
  const relayers: Relayer[] = [];
  atEnd(async () => {
    await Promise.all(relayers.map((relayer) => relayer.stop()));
    rpc.close();
    await chain.stop();
    proxy.close();
  });
  const config = {
    ...chain.config,
    feeBumpSeconds: 30,
    ...(owned !== undefined && (await deployFor(rpc, chain.config.privateKey, owned))),
    contracts: owned === 'quorum' ? quorumContracts() : REFERENCE,
  };
  return {
    config,
    rpc,
    proxy,
    forum,
    lines,
    clock,
    relayer(changes = {}) {
      const now = () => performance.now() + clock.ahead;
      const options = { forum, logger, clock: now, rpcTimeoutMillis: RPC_TIMEOUT_MILLIS };
      const relayer = new Relayer({ config: { ...config, ...changes }, ...options });
      relayers.push(relayer);
      relayer.start();
      return relayer;
    },
    async automine(isOn) {
      await rpc.request('evm_setAutomine', [isOn]);
      if (isOn) await rpc.request('evm_mine', []);
    },
    async inPool(count) {
      const { pending } = (await rpc.request('txpool_status', [])) as { readonly pending: string };
      return Number(pending) === count;
    },
  };
}

export function recordingLogger(lines: string[]): Logger {
  const write = (level: string) => (fields: object, message: string) => {
    lines.push(JSON.stringify({ level, message, ...fields }));
  };
  return { info: write('info'), warn: write('warn'), error: write('error') };
}

const RPC_TIMEOUT_MILLIS = 500;

export async function isSettled(forum: MemoryForum): Promise<boolean> {
  return (await forum.unsettledChambers(1)).length === 0;
}

/** Resolves to the hashes of the transactions that committed the chamber and deployed its ideas. */
export async function onChain(
  { rpc, config }: { readonly rpc: Rpc; readonly config: Pick<RelayerConfig, 'registryAddress' | 'factoryAddress'> },
  chamberId: number,
): Promise<{ readonly commits: readonly Hex[]; readonly deployments: readonly Hex[] }> {
  const { registryAddress, factoryAddress } = config;
  const toBlock = Number(await rpc.request('eth_blockNumber', []));
  const blocks = { fromBlock: 0, toBlock };
  const args = { chamberId: BigInt(chamberId) };
  const commitTopics = encodeEventTopics({ abi: REGISTRY_ABI, eventName: 'ChamberCommitted', args });
  const [, chamberTopic] = commitTopics;
  const commits = await readLogs(rpc, { address: registryAddress, topics: commitTopics, ...blocks });
  const topics = [null, null, chamberTopic ?? null];
  const deployments = await readLogs(rpc, { address: factoryAddress, topics, ...blocks });
  const hashesOf = (logs: Logs) => logs.map(({ transactionHash }) => transactionHash);
  return { commits: hashesOf(commits), deployments: hashesOf(deployments) };
}

const GWEI = 1_000_000_000n;

interface OutsideTransaction {
  readonly nonce?: number;
  readonly fee?: bigint;
  readonly to?: 'registry' | 'factory';
  readonly data?: Hex;
}

/** Signs a transaction of the relayer's account that is not in its log; resolves to the raw transaction. */
export async function signOutsideLog(
  { config }: Pick<RelayerChain, 'config'>,
  { nonce = 0, fee = 10n * GWEI, to, data = '0x' }: OutsideTransaction,
): Promise<Hex> {
  const { chainId, privateKey, registryAddress, factoryAddress } = config;
  const address =
    to === undefined ? openAccount(privateKey).address : to === 'registry' ? registryAddress : factoryAddress;
  const fees = { maxFeePerGas: fee, maxPriorityFeePerGas: fee };
  const unsigned = { chainId, nonce, to: address, data, gas: 3_000_000n, ...fees };
  return (await signTransaction(openAccount(privateKey), unsigned)).rawTransaction;
}

/** Consumes a nonce of the relayer's account with a transaction that is not in its log. */
export async function consumeNonce(opened: RelayerChain, nonce: number): Promise<void> {
  await sendRaw(opened.rpc, await signOutsideLog(opened, { nonce }));
}

/** Waits until every chamber is settled. Advances the clock by `ahead` milliseconds before each check. */
export async function untilSettled({ forum, clock }: RelayerChain, ahead = 0): Promise<void> {
  await until(() => {
    clock.ahead += ahead;
    return isSettled(forum);
  });
}

/** Advances clock and blocks until every chamber is settled and reverting simulations have failed. */
export async function untilFailed({ forum, clock, rpc }: RelayerChain): Promise<void> {
  await until(async () => {
    clock.ahead += 2_000;
    await rpc.request('evm_mine', []);
    return isSettled(forum);
  });
}

/** Waits until every chamber is settled, and expects each job to be done once. */
export async function expectSettledOnce(opened: RelayerChain, ahead = 0): Promise<void> {
  await untilSettled(opened, ahead);
  await expectRecordedOnce(opened);
}

/** Expects one commitment for each chamber and one deployment for each graduate on the chain, as in the log. */
export async function expectRecordedOnce(
  opened: Parameters<typeof onChain>[0] & Pick<RelayerChain, 'forum'>,
): Promise<void> {
  for (const chamberId of opened.forum.events.keys()) {
    const { committed, deployments } = opened.forum.state(chamberId).settlement;
    expect(await onChain(opened, chamberId)).toEqual({
      commits: [committed?.txHash],
      deployments: [...deployments.values()].map(({ outcome }) => outcome?.txHash),
    });
  }
}

export function feesOf(transaction: Pick<RelayTransaction, 'rawTransaction'> | undefined) {
  const { maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(transaction?.rawTransaction ?? '0x');
  return { maxFeePerGas, maxPriorityFeePerGas };
}

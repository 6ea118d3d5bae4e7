// The surroundings of relayer tests: a real development chain, a forum in memory, and relayers that start and stop.
import { encodeEventTopics, type Hex } from 'viem';
import { expect } from 'vitest';
import { type Logs, readLogs, sendRaw } from '../../src/relayer/chain-client.ts';
import type { Logger, RelayerConfig } from '../../src/relayer/context.ts';
import { REGISTRY_ABI } from '../../src/relayer/contracts.ts';
import { type DevChain, startDevChain } from '../../src/relayer/dev-chain.ts';
import { Relayer } from '../../src/relayer/relayer.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { openAccount, signTransaction } from '../../src/relayer/transactions.ts';
import { MemoryForum } from './memory-forum.ts';

export interface RelayerChain {
  readonly chain: DevChain;
  readonly rpc: Rpc;
  readonly forum: MemoryForum;
  /** Every line logged by chain and relayers, as JSON. */
  readonly lines: string[];
  /** The clock by which transactions are stuck: real time plus what a test adds. */
  readonly clock: { ahead: number };
  relayer(changes?: Partial<RelayerConfig>): Relayer;
  /** Ends relayers and chain. */
  close(): Promise<void>;
}

export async function openRelayerChain(): Promise<RelayerChain> {
  const lines: string[] = [];
  const logger = recordingLogger(lines);
  const chain = await startDevChain({ logger });
  const rpc = openRpc(chain.config.rpcUrl);
  const forum = new MemoryForum();
  const clock = { ahead: 0 };
  const relayers: Relayer[] = [];
  return {
    chain,
    rpc,
    forum,
    lines,
    clock,
    relayer(changes = {}) {
      const config = { ...chain.config, feeBumpSeconds: 30, ...changes };
      const now = () => performance.now() + clock.ahead;
      const relayer = new Relayer({ config, forum, logger, clock: now, rpcTimeoutMillis: RPC_TIMEOUT_MILLIS });
      relayers.push(relayer);
      relayer.start();
      return relayer;
    },
    async close() {
      await Promise.all(relayers.map((relayer) => relayer.stop()));
      rpc.close();
      await chain.stop();
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

/** The hashes of the transactions that committed a chamber and that deployed its ideas. */
export async function onChain(
  { rpc, chain }: { readonly rpc: Rpc; readonly chain: Pick<DevChain, 'config'> },
  chamberId: number,
): Promise<{ readonly commits: readonly Hex[]; readonly deployments: readonly Hex[] }> {
  const { registryAddress, factoryAddress } = chain.config;
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

interface ByHand {
  readonly nonce?: number;
  readonly fee?: bigint;
  readonly to?: 'registry' | 'factory';
  readonly data?: Hex;
}

/** A transaction of the relayer's account that is not in its log. */
export async function byHand(
  { chain }: Pick<RelayerChain, 'chain'>,
  { nonce = 0, fee = 10n * GWEI, to, data = '0x' }: ByHand,
): Promise<Hex> {
  const { chainId, privateKey, registryAddress, factoryAddress } = chain.config;
  const address =
    to === undefined ? openAccount(privateKey).address : to === 'registry' ? registryAddress : factoryAddress;
  const fees = { maxFeePerGas: fee, maxPriorityFeePerGas: fee };
  const unsigned = { chainId, nonce, to: address, data, gas: 3_000_000n, ...fees };
  return (await signTransaction(openAccount(privateKey), unsigned)).rawTransaction;
}

/** Uses up a nonce of the relayer's account with a transaction that is not in its log. */
export async function sendForeign(opened: RelayerChain, nonce: number): Promise<void> {
  await sendRaw(opened.rpc, await byHand(opened, { nonce }));
}

/** The chain has one commitment for every chamber and one deployment for each graduate: those that the log names. */
export async function expectRecordedOnce(opened: Pick<RelayerChain, 'chain' | 'rpc' | 'forum'>): Promise<void> {
  for (const chamberId of opened.forum.events.keys()) {
    const { committed, deployments } = opened.forum.state(chamberId).settlement;
    expect(await onChain(opened, chamberId)).toEqual({
      commits: [committed?.txHash],
      deployments: [...deployments.values()].map(({ outcome }) => outcome?.txHash),
    });
  }
}

// A stage for relayer tests: a real development chain, a forum in memory and relayers that come and go.
import type { Hex } from 'viem';
import { readLogs } from '../../src/relayer/chain.ts';
import { chamberCommittedTopics } from '../../src/relayer/contracts.ts';
import { type DevChain, startDevChain } from '../../src/relayer/dev-chain.ts';
import type { Logger, RelayerConfig } from '../../src/relayer/port.ts';
import { Relayer } from '../../src/relayer/relayer.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { MemoryForum } from './memory-forum.ts';

export interface Stage {
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

export async function openStage(): Promise<Stage> {
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
const POLL_MILLIS = 20;
const TIMEOUT_MILLIS = 25_000;

/** Polls until the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + TIMEOUT_MILLIS;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`never came true: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MILLIS));
  }
}

export async function isSettled(forum: MemoryForum): Promise<boolean> {
  return (await forum.unsettledChambers(1)).length === 0;
}

/** What the chain holds of a chamber: the hashes of the transactions that committed it and that deployed its ideas. */
export async function onChain(
  { rpc, chain }: Pick<Stage, 'rpc' | 'chain'>,
  chamberId: number,
): Promise<{ readonly commits: readonly Hex[]; readonly deployments: readonly Hex[] }> {
  const { registryAddress, factoryAddress } = chain.config;
  const toBlock = Number(await rpc.request('eth_blockNumber', []));
  const blocks = { fromBlock: 0, toBlock };
  const [, chamberTopic] = chamberCommittedTopics(chamberId);
  const commits = await readLogs(rpc, registryAddress, chamberCommittedTopics(chamberId), blocks);
  const deployments = await readLogs(rpc, factoryAddress, [null, null, chamberTopic ?? null], blocks);
  return { commits: commits.map(hashOf), deployments: deployments.map(hashOf) };
}

function hashOf(log: { readonly transactionHash: Hex | null }): Hex {
  if (log.transactionHash === null) throw new Error('a log of a pending block');
  return log.transactionHash;
}

// Runs the demo's services in their own processes, and reads the stream and the chain for the comparison at the end.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createPublicClient, http, parseAbi } from 'viem';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { graduates } from '../../projections/graduation.ts';
import { isSettled } from '../../projections/listings.ts';
import { deploymentOf, isDeployed } from '../../projections/settlement.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { appendLeaf, EMPTY_TREE, rootOf } from '../crypto/merkle.ts';
import { findLine } from '../process/child-output.ts';
import { type ChamberEvent, isMove } from '../vocabulary/events.ts';
import { fromHex, type Hex, toHex } from '../vocabulary/values.ts';
import { openDatabase } from './database.ts';
import { openProxy } from './proxy.ts';

/** The service's entry point: TypeScript when run from the sources, JavaScript in the build. */
const MAIN = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url));
const STOP_MILLIS = 5_000;

export interface DemoServices {
  readonly baseUrl: string;
  /** The node whose /health has the chain's RPC URL. */
  readonly relayerUrl: string;
  readonly description: string;
  /** Kills a node and returns a sentence that names the node; undefined if there is only one node. */
  readonly killNode?: () => Promise<string>;
  readonly close: () => Promise<void>;
}

/** Starts a service with a temporary database. Ignores the caller's environment variables, so that the demo is the same everywhere. */
export async function openDemoServices(): Promise<DemoServices> {
  const folder = await mkdtemp(join(tmpdir(), 'chambers-demo-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const { url, stop } = await startNode(folder, { DATABASE_PATH: join(folder, 'chambers.db') });
    const close = async () => {
      await stop('SIGTERM');
      await remove();
    };
    const description = 'with a temporary database and a development chain';
    return { baseUrl: url, relayerUrl: url, description, close };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Starts `count` services with one temporary PostgreSQL database, behind a proxy. The first service has the chain. */
export async function openCluster(count: number): Promise<DemoServices> {
  const cleanups: (() => Promise<void> | void)[] = [];
  const close = async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  };
  try {
    const folder = await mkdtemp(join(tmpdir(), 'chambers-demo-'));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    const database = await openDatabase();
    cleanups.push(database.close);
    const proxy = await openProxy();
    cleanups.push(proxy.close);
    const shared = { DATABASE_URL: database.url, PUBLIC_URL: proxy.url };
    const nodes: Node[] = [];
    for (let index = 0; index < count; index++) {
      const node = await startNode(folder, { ...shared, ...(index > 0 && { CHAIN: 'none' }) });
      cleanups.push(() => node.stop('SIGTERM'));
      proxy.ports.push(Number(new URL(node.url).port));
      nodes.push(node);
    }
    const [relayer, victim] = nodes as [Node, Node];
    const killNode = async () => {
      await victim.stop('SIGKILL');
      return `killed node 2 of ${count}, which serves chamber 1`;
    };
    const description = `a proxy for ${count} nodes on one PostgreSQL database, with a development chain`;
    return { baseUrl: proxy.url, relayerUrl: relayer.url, description, killNode, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Node {
  readonly url: string;
  readonly stop: (signal: NodeJS.Signals) => Promise<void>;
}

/** Rejects with the service's error output if the service does not start. */
async function startNode(folder: string, settings: Readonly<Record<string, string>>): Promise<Node> {
  const { PATH, HOME, TMPDIR, LD_LIBRARY_PATH } = process.env;
  const service = spawn(process.execPath, [MAIN], {
    cwd: folder,
    env: { PATH, HOME, TMPDIR, LD_LIBRARY_PATH, HOST: '127.0.0.1', PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = () => {
    service.kill('SIGTERM');
  };
  process.once('exit', kill);
  const stop = async (signal: NodeJS.Signals) => {
    process.off('exit', kill);
    if (service.exitCode !== null || service.signalCode !== null) return;
    service.kill(signal);
    const timer = setTimeout(() => service.kill('SIGKILL'), STOP_MILLIS);
    await once(service, 'exit');
    clearTimeout(timer);
  };
  let errors = '';
  service.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-4_000);
  });
  try {
    const [, url = ''] = await findLine(service.stdout, /listening on (http:\/\/\S+)/);
    return { url, stop };
  } catch {
    await stop('SIGTERM');
    throw new Error(`the service did not start: ${errors.trim()}`);
  }
}

export interface SettledChamber {
  readonly state: ChamberState;
  /** The Merkle root, computed from the streamed lines alone. */
  readonly root: Hex;
  readonly lines: readonly string[];
}

/** Resolves when the root is committed and every graduate's deployment has an outcome. */
export async function followUntilSettled(
  lines: ReturnType<ForumClient['lines']>,
  onEvent: (event: ChamberEvent, state: ChamberState) => void,
): Promise<SettledChamber> {
  let state: ChamberState | null = null;
  let tree = EMPTY_TREE;
  const received: string[] = [];
  for await (const { event, leaf, line } of lines) {
    received.push(line);
    state = evolveChamber(state, event);
    if (isMove(event)) tree = appendLeaf(tree, fromHex(leaf)).tree;
    onEvent(event, state);
    if (isSettled(state)) return { state, lines: received, root: toHex(rootOf(tree)) };
  }
  throw new Error('the stream ended before the chamber was committed');
}

const REGISTRY = parseAbi(['function rootOf(uint256 chamberId) view returns (bytes32)']);

/** Reads the chamber's root and tokens from the chain. A token's `address` is null if no contract is deployed there. */
export async function readChain(forum: ForumClient, state: ChamberState) {
  const { chain } = await forum.health();
  if (chain?.rpcUrl === undefined) throw new Error('GET /health does not name a development chain');
  const client = createPublicClient({ transport: http(chain.rpcUrl) });
  const root = await client.readContract({
    address: chain.registryAddress,
    abi: REGISTRY,
    functionName: 'rootOf',
    args: [BigInt(state.chamberId)],
  });
  const tokens = graduates(state).map(async ({ ideaId, ticker }) => {
    const { outcome } = deploymentOf(state.settlement, ideaId);
    if (!isDeployed(outcome)) return { ticker, address: null };
    const code = await client.getCode({ address: outcome.tokenAddress as Hex });
    return { ticker, address: code === undefined ? null : outcome.tokenAddress };
  });
  return { root, tokens: await Promise.all(tokens) };
}

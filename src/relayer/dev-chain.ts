// The development chain: an Anvil of the service's own with the reference contracts, so that `npm start` needs nothing
// else. Its state survives on disk, replaced whole, so a reader finds the old state or the new one, never a torn one.
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type Address, getContractAddress, type Hex } from 'viem';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import { replaceFile } from '../files/durable-file.ts';
import { type Anvil, type AnvilOptions, spawnAnvil } from './anvil.ts';
import { type Block, hasCode, readHead } from './chain-client.ts';
import type { Logger, RelayerConfig } from './context.ts';
import { creationCode, REFERENCE } from './contracts.ts';
import { openRpc, type Rpc } from './rpc.ts';

export interface DevChainOptions {
  /** The file of the state between starts; without it the chain is lost at the stop. */
  readonly stateFile?: string | undefined;
  /** Anvil's own, 31337, by default. */
  readonly chainId?: number | undefined;
  readonly logger: Logger;
}

const DEV_CHAIN_ID = 31_337;
const LOOK_MILLIS = 250;
const RESTART_MILLIS = 500;
const RPC_TIMEOUT_MILLIS = 3_000;
/** The length of the chain's state, which it returns in one response. */
const DUMP_BYTES_MAX = 256_000_000;
/** A chain that responds to none of this many requests in a row is replaced: a frozen one after ten seconds. */
const MISSED_MAX = 3;
/** What can't be saved at the stop the relayer sends again after the next start. */
const LAST_SAVE_MILLIS_MAX = 1_000;
/** Anvil mines at once, but not before it responds. */
const MINING_POLL_MILLIS = 10;
const MINING_POLLS_MAX = 300;

/** Anvil's first two accounts: their keys are public, and they hold nothing of value. */
const DEPLOYER: Address = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';
const RELAYER: Address = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';
const RELAYER_KEY: Hex = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';

/**
 * Their addresses follow from the deployer and its first two nonces, so a second start finds them. A state of release 0.1 keeps
 * that release's contracts, which the relayer uses alike.
 */
const CONTRACTS = {
  contracts: REFERENCE,
  registryAddress: getContractAddress({ from: DEPLOYER, nonce: 0n }),
  factoryAddress: getContractAddress({ from: DEPLOYER, nonce: 1n }),
};

export async function startDevChain(options: DevChainOptions): Promise<DevChain> {
  return new DevChain(options, await launch(options));
}

/** Keeps one Anvil running and its state saved: an Anvil that dies or freezes is replaced on the same port. */
export class DevChain {
  /** It mines a block for each transaction and none without, so there is never more than one confirmation. */
  readonly config: Omit<RelayerConfig, 'feeBumpSeconds'> & { readonly chainId: number };
  readonly #options: DevChainOptions;
  readonly #repeats = new RepeatedLog();
  readonly #rpc: Rpc;
  readonly #stopping = new AbortController();
  readonly #supervising: Promise<void>;
  #anvil: Anvil;
  /** Requests without a response since the last one that had one. */
  #missed = 0;
  #savedBlock: Hex | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: DevChainOptions, anvil: Anvil) {
    const { rpcUrl } = anvil;
    const { chainId = DEV_CHAIN_ID } = options;
    this.config = { rpcUrl, chainId, ...CONTRACTS, privateKey: RELAYER_KEY, confirmations: 1 };
    this.#options = options;
    this.#anvil = anvil;
    this.#rpc = openRpc(rpcUrl, { timeoutMillis: RPC_TIMEOUT_MILLIS, responseBytesMax: DUMP_BYTES_MAX });
    this.#supervising = this.#supervise();
  }

  get pid(): number {
    return this.#anvil.pid;
  }

  /** Why the chain can't be used now, in a sentence; undefined while it can. */
  get problem(): string | undefined {
    if (!this.#anvil.isRunning()) return 'the development chain exited';
    return this.#missed > 0 ? 'the development chain does not respond' : undefined;
  }

  /** Saves the state, if the chain responds, and ends Anvil. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    this.#rpc.close();
    await this.#supervising;
    await this.#save(
      openRpc(this.config.rpcUrl, { timeoutMillis: LAST_SAVE_MILLIS_MAX, responseBytesMax: DUMP_BYTES_MAX }),
    ).catch((error) => this.#logFailure(error));
    await this.#anvil.kill();
  }

  async #supervise(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await pause(LOOK_MILLIS, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await this.#look().catch((error) => signal.aborted || this.#logFailure(error));
    }
  }

  async #look(): Promise<void> {
    if (!this.#anvil.isRunning() || this.#missed >= MISSED_MAX) await this.#replace();
    await this.#save(this.#rpc);
    this.#repeats.end(FAILURE);
  }

  async #replace(): Promise<void> {
    const { logger } = this.#options;
    const { pid, port, kill } = this.#anvil;
    const { signal } = this.#stopping;
    const { problem = '' } = this;
    this.#repeats.report(REPLACEMENT, problem, (repeats) =>
      logger.error({ pid, ...repeats }, `${problem}, restarting`),
    );
    await kill();
    await pause(RESTART_MILLIS, undefined, { signal });
    this.#anvil = await launch(this.#options, { port, signal });
    this.#missed = 0;
    this.#repeats.end(REPLACEMENT, () => logger.info({ pid: this.pid }, 'development chain restarted'));
  }

  async #save(rpc: Rpc): Promise<void> {
    const { stateFile } = this.#options;
    const head = await this.#readHead(rpc);
    if (stateFile === undefined || head.hash === this.#savedBlock) return;
    this.#savedBlock = (await saveState(rpc, stateFile, head)) ?? this.#savedBlock;
  }

  async #readHead(rpc: Rpc): Promise<Block> {
    const head = await readHead(rpc).catch((error: unknown) => {
      this.#missed++;
      throw error;
    });
    this.#missed = 0;
    return head;
  }

  #logFailure(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#repeats.report(FAILURE, reason, (repeats) => {
      this.#options.logger.error({ reason, ...repeats }, 'development chain not restarted or not saved');
    });
  }
}

/** Conditions of the log. */
const REPLACEMENT = 'replacement';
const FAILURE = 'failure';

/** An Anvil with the saved state and the contracts. */
async function launch(
  { stateFile, chainId = DEV_CHAIN_ID }: DevChainOptions,
  options: Pick<AnvilOptions, 'port' | 'signal'> = {},
): Promise<Anvil> {
  const load = stateFile !== undefined && existsSync(stateFile) ? ['--load-state', stateFile] : [];
  const anvil = await spawnAnvil(['--chain-id', String(chainId), ...load], options).catch((error: Error) => {
    // Anvil names the option whose file it can't read.
    if (!error.message.includes("'--load-state")) throw error;
    const problem = `the development chain's state is damaged: move ${stateFile} away, and the next start creates a new chain`;
    throw new Error(problem, { cause: error });
  });
  const rpc = openRpc(anvil.rpcUrl, { timeoutMillis: RPC_TIMEOUT_MILLIS, responseBytesMax: DUMP_BYTES_MAX });
  options.signal?.addEventListener('abort', rpc.close);
  try {
    const { registryAddress, factoryAddress } = CONTRACTS;
    await requireContract(rpc, registryAddress, creationCode('ChamberRegistry', RELAYER));
    await requireContract(rpc, factoryAddress, creationCode('IdeaFactory', registryAddress, RELAYER));
    if (stateFile !== undefined) await saveState(rpc, stateFile, await readHead(rpc));
  } catch (error) {
    await anvil.kill();
    throw error;
  } finally {
    options.signal?.removeEventListener('abort', rpc.close);
  }
  return anvil;
}

async function requireContract(rpc: Rpc, address: Address, data: Hex): Promise<void> {
  if (await hasCode(rpc, address)) return;
  await rpc.request('eth_sendTransaction', [{ from: DEPLOYER, data }]);
  for (let poll = 0; poll < MINING_POLLS_MAX; poll++) {
    if (await hasCode(rpc, address)) return;
    await pause(MINING_POLL_MILLIS);
  }
  throw new Error(`no contract at ${address}: the state file is from another development chain, remove it`);
}

const toText = promisify(gunzip);

/**
 * Writes the state to `file`, in the form of `anvil --load-state`, and returns the hash of its last block; undefined if the chain is too
 * busy. A crash before the next time loses the transactions since this one: the relayer sends them again.
 */
async function saveState(rpc: Rpc, file: string, head: Block): Promise<Hex | undefined> {
  const { dump, hash } = (await dumpBetweenBlocks(rpc, head)) ?? {};
  if (dump === undefined) return undefined;
  await replaceFile(file, await toText(Buffer.from(dump.slice(2), 'hex')), { mode: 0o600 });
  return hash;
}

const DUMPS_MAX = 5;

/**
 * Anvil reads its blocks first and its accounts later: a block in between would leave an account whose transaction is in no block, such as
 * a root that the registry holds without the event that says so. On a busy chain a pause between two blocks is found within some dumps.
 */
async function dumpBetweenBlocks(
  rpc: Rpc,
  head: Block,
): Promise<{ readonly dump: string; readonly hash: Hex } | undefined> {
  let before = head;
  for (let attempt = 0; attempt < DUMPS_MAX; attempt++) {
    const dump = await rpc.request('anvil_dumpState', []);
    if (typeof dump !== 'string') throw new Error('Anvil returned no state');
    const after = await readHead(rpc);
    if (after.hash === before.hash) return { dump, hash: after.hash };
    before = after;
  }
  return undefined;
}

// The development chain: an Anvil of the service's own with the reference contracts, so that `npm start` needs nothing
// else. Its state survives on disk, replaced whole, so a reader finds the old state or the new one, never a torn one.
import { existsSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type Address, getContractAddress, type Hex } from 'viem';
import { type Anvil, spawnAnvil } from './anvil.ts';
import { hasCode, readHead } from './chain-client.ts';
import type { Logger, RelayerConfig } from './context.ts';
import { creationCode, REFERENCE } from './contracts.ts';
import { openRpc, type Rpc } from './rpc.ts';

export interface DevChainOptions {
  /** Where the state is kept between starts; without it the chain is lost at the stop. */
  readonly stateFile?: string | undefined;
  /** Anvil's own, 31337, by default. */
  readonly chainId?: number | undefined;
  readonly logger: Logger;
}

const DEV_CHAIN_ID = 31_337;
const SAVE_INTERVAL_MILLIS = 250;
const RESTART_MILLIS = 500;
const RPC_TIMEOUT_MILLIS = 3_000;
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

/** Keeps one Anvil running and its state saved: an Anvil that dies is restarted on the same port. */
export class DevChain {
  /** It mines a block for each transaction and none without, so there is never more than one confirmation. */
  readonly config: Omit<RelayerConfig, 'feeBumpSeconds'> & { readonly chainId: number };
  readonly #options: DevChainOptions;
  readonly #rpc: Rpc;
  readonly #stopping = new AbortController();
  readonly #supervising: Promise<void>;
  #anvil: Anvil;
  #savedBlock: Hex | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: DevChainOptions, anvil: Anvil) {
    const { rpcUrl } = anvil;
    const { chainId = DEV_CHAIN_ID } = options;
    this.config = { rpcUrl, chainId, ...CONTRACTS, privateKey: RELAYER_KEY, confirmations: 1 };
    this.#options = options;
    this.#anvil = anvil;
    this.#rpc = openRpc(rpcUrl, RPC_TIMEOUT_MILLIS);
    this.#supervising = this.#supervise();
  }

  get pid(): number {
    return this.#anvil.pid;
  }

  /** Saves the state and ends Anvil. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    await this.#supervising;
    await this.#attempt(() => this.#save());
    await this.#anvil.kill();
  }

  async #supervise(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await pause(SAVE_INTERVAL_MILLIS, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await this.#attempt(() => (this.#anvil.isRunning() ? this.#save() : this.#restart()));
    }
  }

  async #restart(): Promise<void> {
    const { pid, port } = this.#anvil;
    this.#options.logger.error({ pid }, 'development chain exited, restarting');
    await pause(RESTART_MILLIS);
    this.#anvil = await launch(this.#options, port);
  }

  async #save(): Promise<void> {
    const { stateFile } = this.#options;
    if (stateFile === undefined) return;
    const { hash } = await readHead(this.#rpc);
    if (hash === this.#savedBlock) return;
    await saveState(this.#rpc, stateFile);
    this.#savedBlock = hash;
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.logger.error({ reason }, 'development chain not restarted or not saved');
    }
  }
}

/** An Anvil with the saved state and the contracts. */
async function launch({ stateFile, chainId = DEV_CHAIN_ID }: DevChainOptions, port = 0): Promise<Anvil> {
  const load = stateFile !== undefined && existsSync(stateFile) ? ['--load-state', stateFile] : [];
  const anvil = await spawnAnvil(['--chain-id', String(chainId), ...load], port).catch((error: Error) => {
    // Anvil names the option whose file it can't read.
    if (!error.message.includes("'--load-state")) throw error;
    const problem = `the development chain's state is damaged: move ${stateFile} away, and the next start creates a new chain`;
    throw new Error(problem, { cause: error });
  });
  const rpc = openRpc(anvil.rpcUrl, RPC_TIMEOUT_MILLIS);
  try {
    const { registryAddress, factoryAddress } = CONTRACTS;
    await requireContract(rpc, registryAddress, creationCode('ChamberRegistry', RELAYER));
    await requireContract(rpc, factoryAddress, creationCode('IdeaFactory', registryAddress, RELAYER));
    if (stateFile !== undefined) await saveState(rpc, stateFile);
  } catch (error) {
    await anvil.kill();
    throw error;
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
 * Writes the state to `file`, in the form of `anvil --load-state`. A crash before the next time loses the transactions
 * since this one: the relayer sends them again.
 */
async function saveState(rpc: Rpc, file: string): Promise<void> {
  const dump = await rpc.request('anvil_dumpState', []);
  if (typeof dump !== 'string') throw new Error('Anvil returned no state');
  const draft = `${file}.new`;
  const handle = await open(draft, 'w', 0o600);
  try {
    await handle.writeFile(await toText(Buffer.from(dump.slice(2), 'hex')));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
}

// The development chain: an Anvil of the service's own with the reference contracts, so that `npm start` needs nothing else.
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type Address, getContractAddress, type Hex } from 'viem';
import { type Anvil, spawnAnvil } from './anvil.ts';
import { hasCode, readHead } from './chain.ts';
import { saveChainState } from './chain-state.ts';
import { factoryCreation, registryCreation } from './contracts.ts';
import type { Logger, RelayerConfig } from './port.ts';
import { openRpc, type Rpc } from './rpc.ts';

export interface DevChain {
  /** It mines a block for each transaction and none without: one confirmation is all there will be. */
  readonly config: Omit<RelayerConfig, 'feeBumpSeconds'> & { readonly chainId: number };
  readonly pid: number;
  /** Saves the state and ends Anvil. */
  stop(): Promise<void>;
}

export interface DevChainOptions {
  /** Where the state is kept between starts; without it the chain is forgotten. */
  readonly stateFile?: string;
  /** 31337, Anvil's own, without it. */
  readonly chainId?: number;
  readonly logger: Logger;
}

const DEV_CHAIN_ID = 31_337;
const SAVE_INTERVAL_MILLIS = 250;
const RESTART_MILLIS = 500;
const RPC_TIMEOUT_MILLIS = 3_000;
/** Anvil mines at once, but not before it answers. */
const ARRIVAL_MILLIS = 10;
const ARRIVAL_ATTEMPTS_MAX = 300;

/** Anvil's first two well-known accounts: everybody has their keys, and there is nothing to take. */
const DEPLOYER: Address = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';
const RELAYER: Address = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';
const RELAYER_KEY: Hex = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';

const REGISTRY = getContractAddress({ from: DEPLOYER, nonce: 0n });
const FACTORY = getContractAddress({ from: DEPLOYER, nonce: 1n });

export async function startDevChain(options: DevChainOptions): Promise<DevChain> {
  const keeper = new AnvilKeeper(options);
  const anvil = await keeper.start();
  const { rpcUrl } = anvil;
  return {
    config: {
      rpcUrl,
      chainId: options.chainId ?? DEV_CHAIN_ID,
      registryAddress: REGISTRY,
      factoryAddress: FACTORY,
      privateKey: RELAYER_KEY,
      confirmations: 1,
    },
    get pid() {
      return keeper.pid;
    },
    stop: () => keeper.stop(),
  };
}

/** Keeps one Anvil running and its state saved: an Anvil that dies is started again on the same port. */
class AnvilKeeper {
  readonly #options: DevChainOptions;
  #anvil: Anvil | undefined;
  #rpc: Rpc | undefined;
  #savedBlock: Hex | undefined;
  #saving: Promise<void> = Promise.resolve();
  #saveTimer: NodeJS.Timeout | undefined;
  #restartTimer: NodeJS.Timeout | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: DevChainOptions) {
    this.#options = options;
  }

  get pid(): number {
    return this.#anvil?.pid ?? 0;
  }

  async start(port = 0): Promise<Anvil> {
    const { stateFile, chainId = DEV_CHAIN_ID } = this.#options;
    const load = stateFile !== undefined && existsSync(stateFile) ? ['--load-state', stateFile] : [];
    const anvil = await spawnAnvil(['--chain-id', String(chainId), ...load], port);
    const rpc = openRpc(anvil.rpcUrl, RPC_TIMEOUT_MILLIS);
    try {
      await deployContracts(rpc);
      await this.#save(rpc);
    } catch (error) {
      await anvil.kill();
      throw error;
    }
    this.#anvil = anvil;
    this.#rpc = rpc;
    this.#saveTimer = setInterval(() => this.#saveLater(rpc), SAVE_INTERVAL_MILLIS);
    void anvil.exited.then(() => this.#revive(anvil));
    if (this.#stopped !== undefined) await anvil.kill();
    return anvil;
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    clearInterval(this.#saveTimer);
    clearTimeout(this.#restartTimer);
    await this.#saving;
    if (this.#rpc !== undefined) await this.#save(this.#rpc).catch((error) => this.#complain(error));
    await this.#anvil?.kill();
  }

  #revive(anvil: Anvil): void {
    clearInterval(this.#saveTimer);
    if (this.#stopped !== undefined) return;
    this.#options.logger.error({ pid: anvil.pid }, 'the development chain has ended; it is started again');
    this.#restartTimer = setTimeout(() => {
      this.start(anvil.port).catch((error) => {
        this.#complain(error);
        this.#revive(anvil);
      });
    }, RESTART_MILLIS);
  }

  #saveLater(rpc: Rpc): void {
    this.#saving = this.#saving.then(() => this.#save(rpc)).catch((error) => this.#complain(error));
  }

  async #save(rpc: Rpc): Promise<void> {
    const { stateFile } = this.#options;
    if (stateFile === undefined) return;
    const { hash } = await readHead(rpc);
    if (hash === this.#savedBlock) return;
    await saveChainState(rpc, stateFile);
    this.#savedBlock = hash;
  }

  #complain(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.logger.error({ reason }, 'the development chain could not be kept');
  }
}

/** Their addresses follow from the deployer and its first two nonces, so a second start finds what is there. */
async function deployContracts(rpc: Rpc): Promise<void> {
  if (!(await hasCode(rpc, REGISTRY))) await create(rpc, registryCreation(RELAYER), REGISTRY);
  if (!(await hasCode(rpc, FACTORY))) await create(rpc, factoryCreation(REGISTRY, RELAYER), FACTORY);
}

async function create(rpc: Rpc, data: Hex, expected: Address): Promise<void> {
  await rpc.request('eth_sendTransaction', [{ from: DEPLOYER, data }]);
  for (let attempt = 0; attempt < ARRIVAL_ATTEMPTS_MAX; attempt++) {
    if (await hasCode(rpc, expected)) return;
    await pause(ARRIVAL_MILLIS);
  }
  throw new Error(`no contract arrives at ${expected}: the development chain's state is not this service's; remove it`);
}

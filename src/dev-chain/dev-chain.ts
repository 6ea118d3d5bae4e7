// The development chain: an Anvil process with the reference contracts, so that `npm start` needs nothing else. The service saves the
// chain's state to a file while the chain runs.
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type Address, getContractAddress, type Hex } from 'viem';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import { type Block, hasCode, readHead } from '../relayer/chain-client.ts';
import type { Logger, RelayerConfig } from '../relayer/context.ts';
import { creationCode, REFERENCE } from '../relayer/contracts.ts';
import { openRpc, type Rpc } from '../relayer/rpc.ts';
import { type Anvil, type AnvilOptions, spawnAnvil } from './anvil.ts';
import { saveState } from './saved-state.ts';

export interface DevChainOptions {
  /** If undefined, the chain's state is lost when the service stops. */
  readonly stateFile?: string | undefined;
  /** 31337 by default, as in Anvil. */
  readonly chainId?: number | undefined;
  readonly logger: Logger;
}

const DEV_CHAIN_ID = 31_337;
const CHECK_MILLIS = 250;
const RESTART_MILLIS = 500;
const RPC_TIMEOUT_MILLIS = 3_000;
/** Anvil returns its whole state in one response. */
const DUMP_BYTES_MAX = 256_000_000;
/** Unanswered requests in a row before Anvil is restarted: about ten seconds if it is frozen. */
const MISSED_MAX = 3;
/** If the last save fails, the relayer sends the lost transactions again after the next start. */
const LAST_SAVE_MILLIS_MAX = 1_000;
/** Anvil responds to a transaction before it has mined it. */
const MINING_POLL_MILLIS = 10;
const MINING_POLLS_MAX = 300;

/** Anvil's first two accounts, whose keys are public. */
const DEPLOYER: Address = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';
const RELAYER: Address = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';
const RELAYER_KEY: Hex = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';

/**
 * The addresses depend only on the deployer and its first two nonces, so a later start finds the contracts. A state saved by release 0.1
 * keeps its older contracts at the same addresses.
 */
const CONTRACTS = {
  contracts: REFERENCE,
  registryAddress: getContractAddress({ from: DEPLOYER, nonce: 0n }),
  factoryAddress: getContractAddress({ from: DEPLOYER, nonce: 1n }),
};

export async function startDevChain(options: DevChainOptions): Promise<DevChain> {
  return new DevChain(options, await launch(options));
}

/** Keeps an Anvil process running and its state saved. An Anvil that dies or freezes is restarted on the same port. */
export class DevChain {
  /** Anvil mines one block for each transaction, so an outcome never gets a second confirmation. */
  readonly config: Omit<RelayerConfig, 'feeBumpSeconds'> & { readonly chainId: number };
  readonly #options: DevChainOptions;
  readonly #repeats = new RepeatedLog();
  readonly #rpc: Rpc;
  readonly #stopping = new AbortController();
  readonly #supervising: Promise<void>;
  #anvil: Anvil;
  /** Unanswered requests since the last response. */
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

  /** Why the chain can't be used now; undefined while it can. */
  get problem(): string | undefined {
    if (!this.#anvil.isRunning()) return 'the development chain exited';
    return this.#missed > 0 ? 'the development chain does not respond' : undefined;
  }

  /** Saves the state if Anvil responds, then ends Anvil. */
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
      await pause(CHECK_MILLIS, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await this.#check().catch((error) => signal.aborted || this.#logFailure(error));
    }
  }

  async #check(): Promise<void> {
    if (!this.#anvil.isRunning() || this.#missed >= MISSED_MAX) await this.#restart();
    await this.#save(this.#rpc);
    this.#repeats.end(FAILURE);
  }

  async #restart(): Promise<void> {
    const { logger } = this.#options;
    const { pid, port, kill } = this.#anvil;
    const { signal } = this.#stopping;
    const { problem = '' } = this;
    this.#repeats.report(RESTART, problem, (repeats) => logger.error({ pid, ...repeats }, `${problem}, restarting`));
    await kill();
    await pause(RESTART_MILLIS, undefined, { signal });
    this.#anvil = await launch(this.#options, { port, signal });
    this.#missed = 0;
    this.#repeats.end(RESTART, () => logger.info({ pid: this.pid }, 'development chain restarted'));
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
      this.#options.logger.error({ reason, ...repeats }, 'cannot restart or save the development chain');
    });
  }
}

/** Subjects for RepeatedLog. */
const RESTART = 'restart';
const FAILURE = 'failure';

/** Starts Anvil from the saved state, and deploys the contracts if it lacks them. */
async function launch(
  { stateFile, chainId = DEV_CHAIN_ID }: DevChainOptions,
  options: Pick<AnvilOptions, 'port' | 'signal'> = {},
): Promise<Anvil> {
  const load = stateFile !== undefined && existsSync(stateFile) ? ['--load-state', stateFile] : [];
  const anvil = await spawnAnvil(['--chain-id', String(chainId), ...load], options).catch((error: Error) => {
    // Anvil names the option whose file it can't load.
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
  throw new Error(`no contract at ${address}: the state file is from another development chain; remove it`);
}

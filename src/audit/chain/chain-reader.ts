// The chain as the auditor asks it over JSON-RPC, by viem. None of it is compared here.
import {
  type Address,
  BaseError,
  BlockNotFoundError,
  createPublicClient,
  ExecutionRevertedError,
  type Hex,
  HttpRequestError,
  http,
  type PublicClient,
  parseEventLogs,
  TransactionNotFoundError,
  TransactionReceiptNotFoundError,
  zeroAddress,
} from 'viem';
import { READ_LIMITS } from '../../reading/limits.ts';
import { limitedFetch, UNLIMITED_BY_VIEM } from '../../reading/response.ts';
import { type Millis, toTimestamp } from '../../vocabulary/values.ts';
import { INPUT_LIMITS, type InputLimits, Unreachable, UnusableInput } from '../line/input.ts';
import { ABI } from './contracts.ts';

const NO_ROOT = /^0x0*$/;

/** How a call ended; `unknown` where the RPC does not have the state of that block. */
export type CallOutcome = 'success' | 'reverted' | 'unknown';

export interface AuditedBlock {
  readonly hash: Hex;
  readonly at: Millis;
}

export interface ChainCall {
  readonly from: Address;
  readonly to: Address;
  readonly data: Hex;
  readonly value?: bigint | undefined;
  readonly gas?: bigint | undefined;
}

export interface ChainRead {
  readonly to?: Address | undefined;
  readonly data: Hex;
  readonly gas: bigint;
}

const GAS_USED_UP = /out ?of ?gas|gas required exceeds|intrinsic gas|InvalidFEOpcode|invalid opcode/i;

/** Every question throws Unreachable when there is no usable response. */
export class AuditedChain {
  readonly registries: readonly Address[];
  readonly #host: string;
  readonly #client: PublicClient;

  constructor(rpcUrl: string, registries: readonly Address[], limits: Partial<InputLimits> = {}) {
    this.registries = registries;
    this.#host = new URL(rpcUrl).host;
    const { timeoutSeconds, responseBytesMax } = { ...INPUT_LIMITS, ...limits };
    const fetchFn = limitedFetch({ ...READ_LIMITS, responseBytesMax }, timeoutSeconds * 1_000);
    const transport = http(rpcUrl, { ...UNLIMITED_BY_VIEM, fetchFn, retryCount: 0, onFetchResponse: requireOk });
    this.#client = createPublicClient({ transport, ccipRead: false });
  }

  /** The chamber's roots in the registries that hold one. Throws UnusableInput where there is no registry. */
  async rootsOf(chamberId: number): Promise<readonly Hex[]> {
    const roots = await Promise.all(this.registries.map((registry) => this.#rootOf(registry, chamberId)));
    return roots.map(({ root }) => root).filter((root) => !NO_ROOT.test(root));
  }

  /** Whether a registry has the reference contracts' interface. */
  async isReference(registry: Address): Promise<boolean> {
    return (await this.#rootOf(registry, 0)).isReference;
  }

  /** A registry has one of the two views. */
  async #rootOf(registry: Address, chamberId: number) {
    const call = { address: registry, abi: ABI, args: [BigInt(chamberId)] } as const;
    const orUndefined = (error: BaseError) => {
      if (isTransport(error)) throw this.#toUnreachable(error);
    };
    const root = await this.#client.readContract({ ...call, functionName: 'rootOf' }).catch(orUndefined);
    if (root !== undefined) return { root, isReference: true };
    const chamber = await this.#client.readContract({ ...call, functionName: 'getChamber' }).catch(orUndefined);
    if (chamber === undefined) throw new UnusableInput(`the chain has no ChamberRegistry at ${registry}`);
    return { root: chamber.debateMerkleRoot, isReference: false };
  }

  /** undefined for a transaction that the chain does not know, or that is not in a block yet. */
  async transaction(hash: Hex) {
    try {
      const receipt = await this.#client.getTransactionReceipt({ hash });
      const { input, gas, value } = await this.#client.getTransaction({ hash });
      const { timestamp } = await this.#client.getBlock({ blockNumber: receipt.blockNumber });
      return { ...receipt, input, gas, value, at: toTimestamp(Number(timestamp) * 1000) };
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError || error instanceof TransactionNotFoundError)
        return undefined;
      throw this.#toUnreachable(error);
    }
  }

  /** The tokens that the factories emitted for the chamber from that block on; undefined where the RPC does not search so far. */
  async deployments(factories: readonly string[], chamberId: number, fromBlock: bigint) {
    const range = { fromBlock, toBlock: 'latest' } as const;
    try {
      const logs = await this.#client.getLogs({ address: factories as readonly Address[] as Address[], ...range });
      return parseEventLogs({ abi: ABI, eventName: 'IdeaDeployed', logs, args: { chamberId: BigInt(chamberId) } });
    } catch (error) {
      if (isTransport(error)) throw this.#toUnreachable(error);
      return undefined;
    }
  }

  /** The last block whose time is not after `at`, and not before `from`. */
  async blockAt(at: Millis, from: bigint): Promise<bigint> {
    try {
      let low = from;
      let high = await this.#client.getBlockNumber({ cacheTime: 0 });
      while (low < high) {
        const middle = (low + high + 1n) / 2n;
        const { timestamp } = await this.#client.getBlock({ blockNumber: middle });
        if (Number(timestamp) * 1000 <= at) low = middle;
        else high = middle - 1n;
      }
      return low;
    } catch (error) {
      throw this.#toUnreachable(error);
    }
  }

  async call({ from, to, data, value = 0n, gas }: ChainCall, blockNumber: bigint): Promise<CallOutcome> {
    try {
      await this.#client.call({ account: from, to, data, value, gas, blockNumber });
      return 'success';
    } catch (error) {
      return this.#failureOf(error);
    }
  }

  #failureOf(error: unknown): Exclude<CallOutcome, 'success'> {
    if (isTransport(error)) throw this.#toUnreachable(error);
    const isReverted = error instanceof BaseError && error.walk((cause) => cause instanceof ExecutionRevertedError);
    return isReverted ? 'reverted' : 'unknown';
  }

  async chainId(): Promise<number> {
    try {
      return await this.#client.getChainId();
    } catch (error) {
      throw this.#toUnreachable(error);
    }
  }

  /** undefined for a block that the chain does not have. */
  async block(blockNumber: number): Promise<AuditedBlock | undefined> {
    try {
      const { hash, timestamp } = await this.#client.getBlock({ blockNumber: BigInt(blockNumber) });
      return { hash, at: Number(timestamp) * 1000 };
    } catch (error) {
      if (error instanceof BlockNotFoundError) return undefined;
      throw this.#toUnreachable(error);
    }
  }

  /** The code at the address after that block. */
  async code(address: Address, blockNumber: bigint): Promise<Hex | 'unknown'> {
    try {
      return (await this.#client.getCode({ address, blockNumber })) ?? '0x';
    } catch (error) {
      if (isTransport(error)) throw this.#toUnreachable(error);
      return 'unknown';
    }
  }

  /** The result of a call from the zero address after that block; without `to`, of a contract's creation. Using up the gas counts as reverted. */
  async read({ to, data, gas }: ChainRead, blockNumber: bigint): Promise<Hex | 'reverted' | 'unknown'> {
    const call = { account: zeroAddress, data, gas, blockNumber, ...(to && { to }) };
    try {
      const { data: result = '0x' } = await this.#client.call(call);
      return result;
    } catch (error) {
      const failure = this.#failureOf(error);
      return error instanceof BaseError && GAS_USED_UP.test(error.details) ? 'reverted' : failure;
    }
  }

  /** Names the host alone: the rest of a URL, which viem's longer messages hold, may carry credentials. */
  #toUnreachable(error: unknown): Unreachable {
    const cause = (error instanceof BaseError ? error.walk() : error) as Partial<BaseError>;
    return new Unreachable(`the RPC of ${this.#host} failed: ${cause.shortMessage ?? (cause.message || cause.name)}`);
  }
}

function isTransport(error: unknown): boolean {
  const isFailure = (cause: unknown) => cause instanceof HttpRequestError;
  return error instanceof BaseError && error.walk(isFailure) !== null;
}

function requireOk({ ok, status }: Response): void {
  if (!ok) throw new Error(`it returned status ${status}`);
}

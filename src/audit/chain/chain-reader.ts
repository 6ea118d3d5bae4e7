// Reads the chain over JSON-RPC with viem, without comparing anything.
import {
  type AccessList,
  type Address,
  BaseError,
  BlockNotFoundError,
  type CallParameters,
  createPublicClient,
  ExecutionRevertedError,
  encodeFunctionData,
  type Hex,
  HttpRequestError,
  http,
  type PublicClient,
  parseAbi,
  parseEventLogs,
  TransactionNotFoundError,
  TransactionReceiptNotFoundError,
  zeroAddress,
} from 'viem';
import { READ_LIMITS } from '../../reading/limits.ts';
import { limitedFetch, UNLIMITED_BY_VIEM } from '../../reading/response.ts';
import { type Millis, toTimestamp } from '../../vocabulary/values.ts';
import { INPUT_LIMITS, type InputLimits, Unreachable, UnusableInput } from '../line/input.ts';
import { CONTRACT_FORMS, type ContractForm } from './calls.ts';
import { ABI, refusesCaller } from './contracts.ts';

const NO_ROOT = /^0x0*$/;

/**
 * `caller refused`: the contract rejects the account. `no state`: the RPC lacks the block's state.
 * `refused`: the RPC has the state but does not execute the call.
 */
export type CallOutcome = 'success' | 'reverted' | 'caller refused' | 'no state' | 'refused';

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
  readonly accessList?: AccessList | undefined;
}

export interface ChainRead {
  readonly to?: Address | undefined;
  readonly data: Hex;
  readonly gas: bigint;
}

const RELAYED_ABI = parseAbi(['function relayer() view returns (address)']);
const VIEW_GAS = 1_000_000n;
const ADDRESS_DIGITS = 40;
const ADDRESS_WORD = /^0x0{24}[0-9a-f]{40}$/;
const GAS_USED_UP = /out ?of ?gas|gas required exceeds|intrinsic gas|InvalidFEOpcode|invalid opcode/i;
/** Matches revert errors of nodes that viem does not recognise. */
const REVERTED = /revert|vm execution error/i;
/** More wei than exist on any chain. */
const FUNDS = 2n ** 128n;

export type Transaction = NonNullable<Awaited<ReturnType<AuditedChain['transaction']>>>;

/** All methods throw Unreachable if there is no usable response. */
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

  /** Returns the chamber's roots from the registries that have one. Throws UnusableInput if an address is not a registry. */
  async rootsOf(chamberId: number): Promise<readonly Hex[]> {
    const roots = await Promise.all(this.registries.map((registry) => this.#rootOf(registry, chamberId)));
    return roots.filter((root) => !NO_ROOT.test(root));
  }

  /** Returns the deployment forms that the registry's contracts accept, inferred from the registry's view functions. */
  async formsOf(registry: Address): Promise<readonly ContractForm[]> {
    const views = await this.#readViews(registry, 0);
    return CONTRACT_FORMS.filter((form) => views[form] !== undefined);
  }

  async #rootOf(registry: Address, chamberId: number): Promise<Hex> {
    const { reference, quorum } = await this.#readViews(registry, chamberId);
    const root = reference ?? quorum;
    if (root === undefined) throw new UnusableInput(`the chain has no ChamberRegistry at ${registry}`);
    return root;
  }

  /** Reads the root with each kind's view function; undefined for a function that the contract lacks. */
  async #readViews(registry: Address, chamberId: number): Promise<Readonly<Record<ContractForm, Hex | undefined>>> {
    const call = { address: registry, abi: ABI, args: [BigInt(chamberId)] } as const;
    const orUndefined = (error: BaseError) => {
      if (isTransport(error)) throw this.#toUnreachable(error);
    };
    const [reference, chamber] = await Promise.all([
      this.#client.readContract({ ...call, functionName: 'rootOf' }).catch(orUndefined),
      this.#client.readContract({ ...call, functionName: 'getChamber' }).catch(orUndefined),
    ]);
    return { reference: reference ?? undefined, quorum: chamber?.debateMerkleRoot };
  }

  /** undefined for a transaction that is unknown or not mined yet. */
  async transaction(hash: Hex) {
    try {
      const receipt = await this.#client.getTransactionReceipt({ hash });
      const { input, gas, value, accessList } = await this.#client.getTransaction({ hash });
      const { timestamp } = await this.#client.getBlock({ blockNumber: receipt.blockNumber });
      return { ...receipt, input, gas, value, accessList, at: toTimestamp(Number(timestamp) * 1000) };
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError || error instanceof TransactionNotFoundError)
        return undefined;
      throw this.#toUnreachable(error);
    }
  }

  /** Returns the IdeaDeployed events of the chamber since `fromBlock`; undefined if the RPC does not search that range. */
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

  /** Returns the last block not later than `at`, but at least `from`. */
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

  /** Returns the relayer account of a reference contract after that block; undefined if the contract has no such view function. */
  async relayerOf(contract: Address, blockNumber: bigint): Promise<Address | 'unknown' | undefined> {
    const data = encodeFunctionData({ abi: RELAYED_ABI });
    const result = await this.read({ to: contract, data, gas: VIEW_GAS }, blockNumber);
    if (result === 'unknown') return 'unknown';
    return ADDRESS_WORD.test(result) ? `0x${result.slice(-ADDRESS_DIGITS)}` : undefined;
  }

  async call(call: ChainCall, blockNumber: bigint): Promise<CallOutcome> {
    const outcome = await this.#execute(call, blockNumber);
    if (outcome !== 'unknown') return outcome;
    if (!(await this.#hasState(call.from, blockNumber))) return 'no state';
    // The call may have failed because the account can't pay the call's value, so it is repeated with enough funds.
    const funded = call.value ? await this.#execute(call, blockNumber, FUNDS) : 'unknown';
    return funded === 'unknown' ? 'refused' : funded;
  }

  async #execute({ from, value = 0n, ...call }: ChainCall, blockNumber: bigint, balance?: bigint) {
    const stateOverride = balance === undefined ? undefined : [{ address: from, balance }];
    try {
      await this.#client.call({ account: from, ...call, value, blockNumber, stateOverride } as CallParameters);
      return 'success';
    } catch (error) {
      const failure = this.#failureOf(error);
      return failure === 'reverted' && refusesCaller(revertDataOf(error)) ? 'caller refused' : failure;
    }
  }

  async #hasState(address: Address, blockNumber: bigint): Promise<boolean> {
    try {
      await this.#client.getBalance({ address, blockNumber });
      return true;
    } catch (error) {
      if (isTransport(error)) throw this.#toUnreachable(error);
      return false;
    }
  }

  /** Running out of gas counts as reverted. */
  #failureOf(error: unknown): 'reverted' | 'unknown' {
    if (isTransport(error)) throw this.#toUnreachable(error);
    if (!(error instanceof BaseError)) return 'unknown';
    const isReverted = error.walk((cause) => cause instanceof ExecutionRevertedError) !== null;
    return isReverted || GAS_USED_UP.test(error.details) || REVERTED.test(error.details) ? 'reverted' : 'unknown';
  }

  async chainId(): Promise<number> {
    try {
      return await this.#client.getChainId();
    } catch (error) {
      throw this.#toUnreachable(error);
    }
  }

  /** undefined if the chain does not have the block. */
  async block(blockNumber: number): Promise<AuditedBlock | undefined> {
    try {
      const { hash, timestamp } = await this.#client.getBlock({ blockNumber: BigInt(blockNumber) });
      return { hash, at: Number(timestamp) * 1000 };
    } catch (error) {
      if (error instanceof BlockNotFoundError) return undefined;
      throw this.#toUnreachable(error);
    }
  }

  /** Returns the code at the address after that block. */
  async code(address: Address, blockNumber: bigint): Promise<Hex | 'unknown'> {
    try {
      return (await this.#client.getCode({ address, blockNumber })) ?? '0x';
    } catch (error) {
      if (isTransport(error)) throw this.#toUnreachable(error);
      return 'unknown';
    }
  }

  /** Calls from the zero address after that block; without `to`, simulates a contract creation. */
  async read({ to, data, gas }: ChainRead, blockNumber: bigint): Promise<Hex | 'reverted' | 'unknown'> {
    const call = { account: zeroAddress, data, gas, blockNumber, ...(to && { to }) };
    try {
      const { data: result = '0x' } = await this.#client.call(call);
      return result;
    } catch (error) {
      return this.#failureOf(error);
    }
  }

  /** Names only the host: viem's longer messages contain the URL, which may hold credentials. */
  #toUnreachable(error: unknown): Unreachable {
    const cause = (error instanceof BaseError ? error.walk() : error) as Partial<BaseError>;
    return new Unreachable(`the RPC of ${this.#host} failed: ${cause.shortMessage ?? (cause.message || cause.name)}`);
  }
}

/** viem keeps the node's revert data in the error's `data`, or in an object there. */
function revertDataOf(error: unknown): unknown {
  const { data } = (error instanceof BaseError ? error.walk() : error) as { readonly data?: unknown };
  return typeof data === 'object' && data !== null && 'data' in data ? data.data : data;
}

function isTransport(error: unknown): boolean {
  const isFailure = (cause: unknown) => cause instanceof HttpRequestError;
  return error instanceof BaseError && error.walk(isFailure) !== null;
}

function requireOk({ ok, status }: Response): void {
  if (!ok) throw new Error(`it returned status ${status}`);
}

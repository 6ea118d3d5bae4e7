// What the chain itself says, asked over JSON-RPC: the registry's root, and the transactions that the log names.
import { type Address, decodeFunctionResult, encodeFunctionData, type Hex, type Log, parseEventLogs } from 'viem';
import { toTimestamp } from '../vocabulary/values.ts';
import { ABI } from './contracts.ts';
import { ask, readText } from './fetching.ts';
import { Unreachable, UnusableInput } from './unusable-input.ts';

export interface Receipt {
  readonly isSuccess: boolean;
  readonly blockNumber: number;
  /** Time of the block, ISO 8601 UTC. */
  readonly at: string;
  readonly logs: readonly Log[];
}

const NO_ROOT = /^0x0*$/;
const OK = 200;

export class AuditedChain {
  readonly #rpcUrl: string;
  readonly registry: Address;

  constructor(rpcUrl: string, registry: Address) {
    this.#rpcUrl = rpcUrl;
    this.registry = registry;
  }

  /** The chamber's root in the registry, null before its commitment. Throws UnusableInput where there is no registry. */
  async rootOf(chamberId: number): Promise<Hex | null> {
    const data = encodeFunctionData({ abi: ABI, functionName: 'rootOf', args: [BigInt(chamberId)] });
    const { result } = await this.#ask('eth_call', [{ to: this.registry, data }, 'latest']);
    try {
      const root = decodeFunctionResult({ abi: ABI, functionName: 'rootOf', data: result as Hex });
      return NO_ROOT.test(root) ? null : root;
    } catch {
      throw new UnusableInput(`the chain has no ChamberRegistry at ${this.registry}`);
    }
  }

  /** undefined for a transaction that the chain does not know, or not in a block yet. */
  async receipt(txHash: Hex): Promise<Receipt | undefined> {
    const receipt = (await this.#request('eth_getTransactionReceipt', [txHash])) as RawReceipt | null;
    if (receipt === null) return undefined;
    const block = (await this.#request('eth_getBlockByNumber', [receipt.blockNumber, false])) as RawBlock | null;
    return {
      isSuccess: receipt.status === '0x1',
      blockNumber: Number(receipt.blockNumber),
      at: block === null ? '' : toTimestamp(Number(block.timestamp) * 1000),
      logs: receipt.logs,
    };
  }

  async #request(method: string, params: readonly unknown[]): Promise<unknown> {
    const { result, error } = await this.#ask(method, params);
    if (error !== undefined) throw new Unreachable(`the RPC refuses ${method}: ${String(error.message)}`);
    return result;
  }

  async #ask(method: string, params: readonly unknown[]): Promise<RpcAnswer> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const answer = await ask(this.#rpcUrl, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    });
    const text = await readText(answer);
    if (answer.status !== OK) throw new Unreachable(`the RPC answers ${method} with status ${answer.status}`);
    return parseAnswer(text, method);
  }
}

interface RawReceipt {
  readonly status: Hex;
  readonly blockNumber: Hex;
  readonly logs: readonly Log[];
}

interface RawBlock {
  readonly timestamp: Hex;
}

interface RpcAnswer {
  readonly result?: unknown;
  readonly error?: { readonly message?: unknown };
}

function parseAnswer(text: string, method: string): RpcAnswer {
  try {
    return JSON.parse(text) as RpcAnswer;
  } catch {
    throw new Unreachable(`the RPC answers ${method} with no JSON`);
  }
}

/** Events of the contracts among a receipt's logs, each with the address that emitted it. */
export function contractEvents({ logs }: Receipt) {
  return parseEventLogs({ abi: ABI, logs: [...logs] });
}

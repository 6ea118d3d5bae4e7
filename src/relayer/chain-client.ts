// What the relayer asks of an EVM node, parsed into types: a node that returns another form counts as unavailable.
import type { Address, Hex, RpcLog } from 'viem';
import type { Millis } from '../vocabulary/values.ts';
import { type Rpc, RpcError } from './rpc.ts';

export type Log = RpcLog;

export interface Block {
  readonly number: number;
  readonly hash: Hex;
  readonly at: Millis;
  readonly baseFeePerGas: bigint;
}

export interface Receipt {
  readonly txHash: Hex;
  readonly blockNumber: number;
  readonly blockHash: Hex;
  readonly isSuccess: boolean;
  readonly logs: readonly Log[];
}

export interface Call {
  readonly from?: Address;
  readonly to: Address;
  readonly data: Hex;
}

/** As eth_getLogs takes it: null matches any, an array each of its members. */
export type Topic = Hex | readonly Hex[] | null;

export interface LogFilter {
  readonly address: Address;
  readonly topics: readonly Topic[];
  readonly fromBlock: number;
  readonly toBlock: number;
}

export async function readChainId(rpc: Rpc): Promise<number> {
  return Number(quantity(await rpc.request('eth_chainId', [])));
}

export async function readHead(rpc: Rpc): Promise<Block> {
  return toBlock(await rpc.request('eth_getBlockByNumber', ['latest', false]));
}

export async function readBlock(rpc: Rpc, blockNumber: number): Promise<Block | null> {
  const block = await rpc.request('eth_getBlockByNumber', [toQuantity(blockNumber), false]);
  return block === null ? null : toBlock(block);
}

function toBlock(block: unknown): Block {
  const { number, hash, timestamp, baseFeePerGas = '0x0' } = record(block);
  return {
    number: Number(quantity(number)),
    hash: hex(hash),
    at: Number(quantity(timestamp)) * 1000,
    baseFeePerGas: quantity(baseFeePerGas),
  };
}

/** How many of the account's transactions are in blocks: the first nonce that is free on chain. */
export async function readNonce(rpc: Rpc, account: Address): Promise<number> {
  return Number(quantity(await rpc.request('eth_getTransactionCount', [account, 'latest'])));
}

export async function readBalance(rpc: Rpc, account: Address): Promise<bigint> {
  return quantity(await rpc.request('eth_getBalance', [account, 'latest']));
}

export async function readPriorityFee(rpc: Rpc): Promise<bigint> {
  return quantity(await rpc.request('eth_maxPriorityFeePerGas', []));
}

export async function hasCode(rpc: Rpc, address: Address): Promise<boolean> {
  return hex(await rpc.request('eth_getCode', [address, 'latest'])) !== '0x';
}

/** null while the transaction is in no block that the node knows. */
export async function readReceipt(rpc: Rpc, txHash: Hex): Promise<Receipt | null> {
  const receipt = await rpc.request('eth_getTransactionReceipt', [txHash]);
  if (receipt === null) return null;
  const { blockNumber, blockHash, status, logs } = record(receipt);
  return {
    txHash,
    blockNumber: Number(quantity(blockNumber)),
    blockHash: hex(blockHash),
    isSuccess: quantity(status) === 1n,
    logs: toLogs(logs),
  };
}

/** Whether the node has the transaction in a block, even if its receipt is not available yet. */
export async function isInBlock(rpc: Rpc, txHash: Hex): Promise<boolean> {
  const transaction = await rpc.request('eth_getTransactionByHash', [txHash]);
  if (transaction === null) return false;
  const { blockNumber = null } = record(transaction);
  return blockNumber !== null;
}

export async function readCall(rpc: Rpc, call: Call): Promise<Hex> {
  return hex(await rpc.request('eth_call', [call, 'latest']));
}

/** `0x` where the call reverts; other errors are thrown. */
export async function tryCall(rpc: Rpc, call: Call): Promise<Hex> {
  try {
    return await readCall(rpc, call);
  } catch (error) {
    if (revertDataOf(error) === undefined) throw error;
    return '0x';
  }
}

/** The gas that a call would take, or the data that it reverts with; other errors are thrown. */
export async function estimateGas(
  rpc: Rpc,
  call: Call,
): Promise<{ readonly gas: bigint } | { readonly revertData: Hex }> {
  try {
    return { gas: quantity(await rpc.request('eth_estimateGas', [call])) };
  } catch (error) {
    const revertData = revertDataOf(error);
    if (revertData === undefined) throw error;
    return { revertData };
  }
}

/** Nodes put the reason into `data`, some one level deeper; without one only their message says that it was a revert. */
function revertDataOf(error: unknown): Hex | undefined {
  if (!(error instanceof RpcError) || error.kind !== 'rejected') return undefined;
  const { data } = error;
  const reason = typeof data === 'object' && data !== null && 'data' in data ? (data.data ?? data) : data;
  if (isHex(reason)) return reason;
  return /\brevert/i.test(error.message) ? '0x' : undefined;
}

/** `nonce_used`: the nonce is used up. `underpriced`: it pays less than the block, or another transaction of this nonce. */
export type SendOutcome = 'accepted' | 'nonce_used' | 'underpriced' | 'no_funds';

const SEND_ERRORS: readonly (readonly [RegExp, SendOutcome])[] = [
  [/already (known|imported|exists)|known transaction/i, 'accepted'],
  [/underpriced|replacement|fee too low|less than block base fee/i, 'underpriced'],
  [/nonce (is )?too low|nonce has already been used|old nonce|invalid nonce/i, 'nonce_used'],
  [/insufficient (funds|balance)|not enough funds|overshot/i, 'no_funds'],
];

/** Hands signed bytes to the node; doing so again is harmless. Unknown errors are thrown. */
export async function sendRaw(rpc: Rpc, rawTransaction: Hex): Promise<SendOutcome> {
  try {
    await rpc.request('eth_sendRawTransaction', [rawTransaction]);
    return 'accepted';
  } catch (error) {
    const message = error instanceof RpcError && error.kind === 'rejected' ? error.message : '';
    const known = SEND_ERRORS.find(([pattern]) => pattern.test(message));
    if (known === undefined) throw error;
    return known[1];
  }
}

export async function readLogs(rpc: Rpc, { fromBlock, toBlock, ...filter }: LogFilter): Promise<readonly Log[]> {
  const range = { fromBlock: toQuantity(fromBlock), toBlock: toQuantity(toBlock) };
  return toLogs(await rpc.request('eth_getLogs', [{ ...filter, ...range }]));
}

/** Every provider serves this many blocks at a time. */
const WINDOW_BLOCKS = 2_000;
/** Weeks of blocks: an event is looked for soon after its chamber has closed. */
const WINDOWS_MAX = 200;

/** Finds an event among all blocks up to now, newest first through providers that limit the range of blocks. */
export async function searchLogs<Found>(
  rpc: Rpc,
  contract: Pick<LogFilter, 'address' | 'topics'>,
  find: (logs: readonly Log[]) => Found | undefined,
): Promise<Found | undefined> {
  const { number: head } = await readHead(rpc);
  try {
    return find(await readLogs(rpc, { ...contract, fromBlock: 0, toBlock: head }));
  } catch (error) {
    if (!(error instanceof RpcError) || error.kind !== 'rejected' || head < WINDOW_BLOCKS) throw error;
  }
  const last = Math.max(0, head - WINDOWS_MAX * WINDOW_BLOCKS + 1);
  for (let toBlock = head; toBlock >= last; toBlock -= WINDOW_BLOCKS) {
    const fromBlock = Math.max(0, toBlock - WINDOW_BLOCKS + 1);
    const found = find(await readLogs(rpc, { ...contract, fromBlock, toBlock }));
    if (found !== undefined) return found;
  }
  return undefined;
}

function toQuantity(value: number): Hex {
  return `0x${value.toString(16)}`;
}

function isHex(value: unknown): value is Hex {
  return typeof value === 'string' && /^0x[0-9a-fA-F]*$/.test(value);
}

function hex(value: unknown): Hex {
  if (!isHex(value)) throw malformed();
  return value;
}

function quantity(value: unknown): bigint {
  if (!isHex(value) || value === '0x') throw malformed();
  return BigInt(value);
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw malformed();
  return value as Readonly<Record<string, unknown>>;
}

function toLogs(value: unknown): readonly Log[] {
  if (!Array.isArray(value)) throw malformed();
  return value.map((item) => {
    const { address, topics, data, transactionHash, blockHash, blockNumber } = record(item);
    if (!Array.isArray(topics)) throw malformed();
    for (const member of [address, data, transactionHash, blockHash, blockNumber, ...topics]) hex(member);
    return item as Log;
  });
}

function malformed(): RpcError {
  return new RpcError('unavailable', 'the RPC returned a malformed response');
}

// What the relayer asks of an EVM node, parsed into types: a node that answers in a wrong form counts as away.
import type { Address, Hex, RpcLog } from 'viem';
import type { Millis } from '../vocabulary/values.ts';
import { type Rpc, RpcError } from './rpc.ts';

export type Log = RpcLog;

export interface Head {
  readonly number: number;
  readonly hash: Hex;
  readonly baseFeePerGas: bigint;
}

export interface Block {
  readonly hash: Hex;
  readonly at: Millis;
}

export interface Receipt {
  readonly txHash: Hex;
  readonly blockNumber: number;
  readonly blockHash: Hex;
  readonly isSuccess: boolean;
  readonly logs: readonly Log[];
}

export interface Call {
  readonly from: Address;
  readonly to: Address;
  readonly data: Hex;
}

/** The gas that a call would take, or the data that it reverts with. */
export type Estimate = { readonly gas: bigint } | { readonly revertData: Hex };

/** `taken`: the nonce is used up. `underpriced`: it pays less than the block, or another transaction of this nonce. */
export type SendOutcome = 'accepted' | 'taken' | 'underpriced' | 'no_funds';

export async function readChainId(rpc: Rpc): Promise<number> {
  return Number(quantity(await rpc.request('eth_chainId', [])));
}

export async function readHead(rpc: Rpc): Promise<Head> {
  const block = record(await rpc.request('eth_getBlockByNumber', ['latest', false]));
  const { number, hash, baseFeePerGas = '0x0' } = block;
  return { number: Number(quantity(number)), hash: hex(hash), baseFeePerGas: quantity(baseFeePerGas) };
}

export async function readBlock(rpc: Rpc, blockNumber: number): Promise<Block | null> {
  const block = await rpc.request('eth_getBlockByNumber', [toQuantity(blockNumber), false]);
  if (block === null) return null;
  const { hash, timestamp } = record(block);
  return { hash: hex(hash), at: Number(quantity(timestamp)) * 1000 };
}

/** How many transactions of the account are in blocks: the first nonce that is free on chain. */
export async function readNonce(rpc: Rpc, account: Address, blockNumber?: number): Promise<number> {
  const block = blockNumber === undefined ? 'latest' : toQuantity(blockNumber);
  return Number(quantity(await rpc.request('eth_getTransactionCount', [account, block])));
}

export async function readBalance(rpc: Rpc, account: Address): Promise<bigint> {
  return quantity(await rpc.request('eth_getBalance', [account, 'latest']));
}

export async function hasCode(rpc: Rpc, address: Address): Promise<boolean> {
  return hex(await rpc.request('eth_getCode', [address, 'latest'])) !== '0x';
}

export async function readCall(rpc: Rpc, call: Omit<Call, 'from'>): Promise<Hex> {
  return hex(await rpc.request('eth_call', [call, 'latest']));
}

/** undefined where the call reverts; other refusals are thrown. */
export async function tryCall(rpc: Rpc, call: Omit<Call, 'from'>): Promise<Hex | undefined> {
  try {
    return await readCall(rpc, call);
  } catch (error) {
    if (revertDataOf(error) === undefined) throw error;
    return undefined;
  }
}

export async function readPriorityFee(rpc: Rpc): Promise<bigint> {
  return quantity(await rpc.request('eth_maxPriorityFeePerGas', []));
}

/** null while the transaction is in no block that the node knows. */
export async function readReceipt(rpc: Rpc, txHash: Hex): Promise<Receipt | null> {
  const answer = await rpc.request('eth_getTransactionReceipt', [txHash]);
  if (answer === null) return null;
  const { blockNumber, blockHash, status, logs } = record(answer);
  return {
    txHash,
    blockNumber: Number(quantity(blockNumber)),
    blockHash: hex(blockHash),
    isSuccess: quantity(status) === 1n,
    logs: toLogs(logs),
  };
}

/** Whether the node has the transaction in a block, even if its receipt is not to be had yet. */
export async function isInBlock(rpc: Rpc, txHash: Hex): Promise<boolean> {
  const transaction = await rpc.request('eth_getTransactionByHash', [txHash]);
  if (transaction === null) return false;
  const { blockNumber = null } = record(transaction);
  return blockNumber !== null;
}

/** Logs of one contract in the blocks from `fromBlock` to `toBlock`; a topic of null fits any. */
export async function readLogs(
  rpc: Rpc,
  address: Address,
  topics: readonly (Hex | null)[],
  { fromBlock, toBlock }: { readonly fromBlock: number; readonly toBlock: number },
): Promise<readonly Log[]> {
  const filter = { address, topics, fromBlock: toQuantity(fromBlock), toBlock: toQuantity(toBlock) };
  return toLogs(await rpc.request('eth_getLogs', [filter]));
}

/** Other refusals than a revert are thrown. */
export async function estimateGas(rpc: Rpc, call: Call): Promise<Estimate> {
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
  if (!(error instanceof RpcError) || error.kind !== 'refused') return undefined;
  const inner =
    typeof error.data === 'object' && error.data !== null ? (error.data as { data?: unknown }).data : undefined;
  const data = inner ?? error.data;
  if (isHex(data)) return data;
  return /\brevert/i.test(error.message) ? '0x' : undefined;
}

const SEND_REFUSALS: readonly (readonly [RegExp, SendOutcome])[] = [
  [/already (known|imported|exists)|known transaction/i, 'accepted'],
  [/underpriced|replacement|fee too low|less than block base fee/i, 'underpriced'],
  [/nonce (is )?too low|nonce has already been used|old nonce|invalid nonce/i, 'taken'],
  [/insufficient (funds|balance)|not enough funds|overshot/i, 'no_funds'],
];

/** Hands signed bytes to the node; doing so again is harmless. Unknown refusals are thrown. */
export async function sendRaw(rpc: Rpc, rawTransaction: Hex): Promise<SendOutcome> {
  try {
    await rpc.request('eth_sendRawTransaction', [rawTransaction]);
    return 'accepted';
  } catch (error) {
    const message = error instanceof RpcError && error.kind === 'refused' ? error.message : '';
    const refusal = SEND_REFUSALS.find(([pattern]) => pattern.test(message));
    if (refusal === undefined) throw error;
    return refusal[1];
  }
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
  return new RpcError('away', 'the RPC answers in a form that is no Ethereum node’s');
}

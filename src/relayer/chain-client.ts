// The relayer's requests to an EVM node, parsed into types. A node that returns a malformed response counts as unavailable.
import * as v from 'valibot';
import type { Address, Hex, RpcLog } from 'viem';
import { isContractCode } from '../crypto/validation-call.ts';
import { isRejection, type Rpc, RpcError } from './rpc.ts';

const matching = (pattern: RegExp) => v.custom<Hex>((value) => typeof value === 'string' && pattern.test(value));
const hex = matching(/^0x[0-9a-fA-F]*$/);
const quantity = v.pipe(
  matching(/^0x[0-9a-fA-F]+$/),
  v.transform((digits: Hex) => BigInt(digits)),
);
const integer = v.pipe(quantity, v.transform(Number));

const block = v.pipe(
  v.object({
    number: integer,
    hash: hex,
    timestamp: integer,
    baseFeePerGas: v.optional(quantity),
    gasLimit: v.optional(quantity),
  }),
  v.transform(({ timestamp, ...rest }) => ({ ...rest, at: timestamp * 1000 })),
);
/** `at` is the block's time in milliseconds; a chain before EIP-1559 has no base fee. */
export type Block = Readonly<v.InferOutput<typeof block>>;

const logFields = v.object({
  address: hex,
  topics: v.array(hex),
  data: hex,
  transactionHash: hex,
  blockHash: hex,
  blockNumber: hex,
});
const logs = v.array(v.custom<RpcLog & { readonly transactionHash: Hex }>((value) => v.is(logFields, value)));
export type Logs = Readonly<v.InferOutput<typeof logs>>;

const receipt = v.object({
  transactionHash: hex,
  blockNumber: integer,
  blockHash: hex,
  status: integer,
  logs,
  gasUsed: v.optional(quantity, '0x0'),
  effectiveGasPrice: v.optional(quantity, '0x0'),
  /** A rollup's fee for publishing the transaction on its parent chain. */
  l1Fee: v.nullish(quantity),
});
/** `status` is 1 if the transaction succeeded. */
export type Receipt = Readonly<v.InferOutput<typeof receipt>>;

async function query<const Schema extends v.GenericSchema>(
  rpc: Rpc,
  schema: Schema,
  [method, ...params]: readonly [method: string, ...params: readonly unknown[]],
): Promise<v.InferOutput<Schema>> {
  const result = v.safeParse(schema, await rpc.request(method, params));
  if (result.success) return result.output;
  throw new RpcError('unavailable', 'the RPC returned a malformed response');
}

export function readChainId(rpc: Rpc): Promise<number> {
  return query(rpc, integer, ['eth_chainId']);
}

export function readHead(rpc: Rpc): Promise<Block> {
  return query(rpc, block, ['eth_getBlockByNumber', 'latest', false]);
}

export function readBlock(rpc: Rpc, blockNumber: number): Promise<Block | null> {
  return query(rpc, v.nullable(block), ['eth_getBlockByNumber', toQuantity(blockNumber), false]);
}

/** Resolves to the account's first nonce that no block has used. */
export function readNonce(rpc: Rpc, account: Address): Promise<number> {
  return query(rpc, integer, ['eth_getTransactionCount', account, 'latest']);
}

/** Resolves to the account's next nonce at a given block. Nodes reject the request for blocks whose state they have pruned. */
export function readNonceAfter(rpc: Rpc, account: Address, blockNumber: number): Promise<number> {
  return query(rpc, integer, ['eth_getTransactionCount', account, toQuantity(blockNumber)]);
}

/** Resolves to the account's next nonce, counting transactions in the node's pool. */
export function readPendingNonce(rpc: Rpc, account: Address): Promise<number> {
  return query(rpc, integer, ['eth_getTransactionCount', account, 'pending']);
}

export function readBalance(rpc: Rpc, account: Address): Promise<bigint> {
  return query(rpc, quantity, ['eth_getBalance', account, 'latest']);
}

export function readPriorityFee(rpc: Rpc): Promise<bigint> {
  return query(rpc, quantity, ['eth_maxPriorityFeePerGas']);
}

const HISTORY_BLOCKS = 20;
const MEDIAN_PERCENTILE = 50;
const feeHistory = v.object({
  baseFeePerGas: v.array(quantity),
  reward: v.nullish(v.array(v.nullable(v.array(quantity))), []),
});

/** Resolves to the base fee and median tip of each recent block; the tip of an empty block is 0. */
export async function readFeeHistory(
  rpc: Rpc,
): Promise<{ readonly baseFees: readonly bigint[]; readonly tips: readonly bigint[] }> {
  const blocks = toQuantity(HISTORY_BLOCKS);
  const found = await query(rpc, feeHistory, ['eth_feeHistory', blocks, 'latest', [MEDIAN_PERCENTILE]]);
  return { baseFees: found.baseFeePerGas, tips: (found.reward ?? []).flatMap((tips) => tips?.[0] ?? []) };
}

/** Whether the address has code in the latest block, or in the block with this hash (EIP-1898). */
export async function hasCode(rpc: Rpc, address: Address, blockHash?: Hex): Promise<boolean> {
  const block = blockHash === undefined ? 'latest' : { blockHash, requireCanonical: true };
  return isContractCode(await query(rpc, hex, ['eth_getCode', address, block]));
}

/** Resolves to null if the node knows no block with the transaction. */
export function readReceipt(rpc: Rpc, txHash: Hex): Promise<Receipt | null> {
  return query(rpc, v.nullable(receipt), ['eth_getTransactionReceipt', txHash]);
}

const transaction = v.object({ blockNumber: v.nullish(v.unknown()) });

/** Whether the transaction is in a block, even if its receipt is not available yet. */
export async function isInBlock(rpc: Rpc, txHash: Hex): Promise<boolean> {
  const found = await query(rpc, v.nullable(transaction), ['eth_getTransactionByHash', txHash]);
  return (found?.blockNumber ?? null) !== null;
}

const blockWithTransactions = v.nullable(
  v.object({ transactions: v.array(v.object({ hash: hex, from: hex, nonce: integer })) }),
);

export async function readTransactionsOf(
  rpc: Rpc,
  account: Address,
  blockNumber: number,
): Promise<readonly { readonly hash: Hex; readonly nonce: number }[]> {
  const found = await query(rpc, blockWithTransactions, ['eth_getBlockByNumber', toQuantity(blockNumber), true]);
  return found?.transactions.filter(({ from }) => from.toLowerCase() === account.toLowerCase()) ?? [];
}

export interface Call {
  readonly from?: Address;
  /** Undefined to create a contract. */
  readonly to: Address | undefined;
  readonly data: Hex;
  /** In wei. */
  readonly value?: bigint;
}

export function readCall(rpc: Rpc, call: Call): Promise<Hex> {
  return query(rpc, hex, ['eth_call', toParameter(call), 'latest']);
}

/** Executes a call against the state of a block (EIP-1898). The node rejects a block that a reorganization has removed. */
export function readCallAt(rpc: Rpc, { gas, ...call }: Call & { readonly gas: bigint }, blockHash: Hex): Promise<Hex> {
  const parameter = { ...toParameter(call), gas: toQuantity(gas) };
  return query(rpc, hex, ['eth_call', parameter, { blockHash, requireCanonical: true }]);
}

export function readGas(rpc: Rpc, call: Call): Promise<bigint> {
  return query(rpc, quantity, ['eth_estimateGas', toParameter(call)]);
}

function toParameter({ value = 0n, ...call }: Call): object {
  return value === 0n ? call : { ...call, value: toQuantity(value) };
}

/** Resolves to the call's result or its revert data; other errors are thrown. */
export async function orRevert<Result>(
  call: Promise<Result>,
): Promise<{ readonly result: Result } | { readonly revertData: Hex }> {
  try {
    return { result: await call };
  } catch (error) {
    const revertData = revertDataOf(error);
    if (revertData === undefined) throw error;
    return { revertData };
  }
}

/** Nodes put the reason into `data` or `data.data`. For a revert without a reason, only the error message shows that the call reverted. */
function revertDataOf(error: unknown): Hex | undefined {
  if (!isRejection(error)) return undefined;
  const { data } = error;
  const reason = typeof data === 'object' && data !== null && 'data' in data ? (data.data ?? data) : data;
  if (v.is(hex, reason)) return reason;
  return /\brevert/i.test(error.message) ? '0x' : undefined;
}

/** `underpriced`: the fee is lower than the block or the pending transaction with this nonce requires. */
export type SendOutcome = 'accepted' | 'nonce_used' | 'underpriced' | 'no_funds';

const SEND_ERRORS: readonly (readonly [RegExp, SendOutcome])[] = [
  [/already (known|imported|exists)|known transaction/i, 'accepted'],
  [/underpriced|replacement|(fee|price) too low|gas price below minimum|less than block base fee/i, 'underpriced'],
  [/nonce (is )?too low|nonce has already been used|old nonce|invalid nonce/i, 'nonce_used'],
  [/insufficient (funds|balance)|not enough funds|overshot/i, 'no_funds'],
];

/** Sends a signed transaction; sending it again is harmless. Throws unknown errors. */
export async function sendRaw(rpc: Rpc, rawTransaction: Hex): Promise<SendOutcome> {
  try {
    await rpc.request('eth_sendRawTransaction', [rawTransaction]);
    return 'accepted';
  } catch (error) {
    const known = isRejection(error) && SEND_ERRORS.find(([pattern]) => pattern.test(error.message));
    if (!known) throw error;
    return known[1];
  }
}

export interface LogFilter {
  readonly address: Address;
  /** As in eth_getLogs: null matches any topic, an array any of its members. */
  readonly topics: readonly (Hex | readonly Hex[] | null)[];
  readonly fromBlock: number;
  readonly toBlock: number;
}

export function readLogs(rpc: Rpc, { fromBlock, toBlock, ...filter }: LogFilter): Promise<Logs> {
  const range = { fromBlock: toQuantity(fromBlock), toBlock: toQuantity(toBlock) };
  return query(rpc, logs, ['eth_getLogs', { ...filter, ...range }]);
}

function toQuantity(value: number | bigint): Hex {
  return `0x${value.toString(16)}`;
}

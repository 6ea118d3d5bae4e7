// Transactions of the relayer's account: signed for the configured chain whatever the RPC reports, recognized in the log,
// priced (EIP-1559), and looked up on the chain.
import { setImmediate } from 'node:timers/promises';
import { type Address, type Hex, parseSignature, parseTransaction, recoverAddress, serializeTransaction } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { keccak256 } from '../crypto/keccak.ts';
import type { RelayTransaction } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { type Block, isInBlock, type Receipt, readPriorityFee, readReceipt } from './chain-client.ts';
import type { Rpc } from './rpc.ts';

const PRIVATE_KEY = /^0x[0-9a-fA-F]{64}$/;

/** Throws without naming the key when it is invalid. */
export function openAccount(privateKey: Hex): PrivateKeyAccount {
  try {
    if (PRIVATE_KEY.test(privateKey)) return privateKeyToAccount(privateKey);
  } catch {
    // Out of the curve's range: rejected like any other.
  }
  throw new Error('the relayer’s private key must be 0x and 64 hex digits, a key of secp256k1');
}

/** Wei per unit of gas. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

export interface UnsignedTransaction extends Fees {
  readonly chainId: number;
  readonly nonce: number;
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
}

/** Hashed by our own keccak256, because viem's takes 5 ms for the calldata of a long idea. */
export async function signTransaction(
  account: PrivateKeyAccount,
  unsigned: UnsignedTransaction,
): Promise<RelayTransaction> {
  const { chainId, nonce } = unsigned;
  const transaction = { type: 'eip1559', ...unsigned } as const;
  const signature = await account.sign({ hash: hashOf(serializeTransaction(transaction)) });
  const rawTransaction = serializeTransaction(transaction, parseSignature(signature));
  const txHash = hashOf(rawTransaction);
  rememberSigner(txHash, account.address);
  return { chainId, nonce, txHash, rawTransaction };
}

function hashOf(bytes: Hex): Hex {
  return toHex(keccak256(Buffer.from(bytes.slice(2), 'hex')));
}

/** What was signed, to be signed again with other fees or at another nonce. */
export function decodeTransaction({ rawTransaction, chainId, nonce }: RelayTransaction): UnsignedTransaction {
  const { to, data, gas, maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(rawTransaction);
  if (typeof to !== 'string' || data === undefined || gas === undefined) throw new Error('not a relay transaction');
  return { chainId, nonce, to, data, gas, maxFeePerGas, maxPriorityFeePerGas };
}

const SIGNERS_MAX = 10_000;

/** By transaction hash; undefined where the bytes are not a signed transaction. A recovery takes milliseconds. */
const signers = new Map<Hex, Address | undefined>();

function rememberSigner(txHash: Hex, signer: Address | undefined): void {
  if (signers.size >= SIGNERS_MAX) signers.clear();
  signers.set(txHash, signer);
}

/** The account's own: a nonce counts for its own account alone, and an operator may change the key. */
export async function signedBy(
  account: Address,
  transactions: readonly RelayTransaction[],
): Promise<readonly RelayTransaction[]> {
  const own: RelayTransaction[] = [];
  for (const transaction of transactions) {
    if ((await signerOf(transaction)) === account) own.push(transaction);
  }
  return own;
}

async function signerOf({ txHash, rawTransaction }: RelayTransaction): Promise<Address | undefined> {
  if (signers.has(txHash)) return signers.get(txHash);
  // A log read back after a restart holds hundreds: other work of the process comes in between.
  await setImmediate();
  const signer = await recoverSigner(rawTransaction).catch(() => undefined);
  rememberSigner(txHash, signer);
  return signer;
}

async function recoverSigner(rawTransaction: Hex): Promise<Address> {
  const transaction = parseTransaction(rawTransaction);
  if (transaction.type !== 'eip1559') throw new Error('not a relay transaction');
  const { r = '0x', s = '0x', yParity = 0, v: _, ...unsigned } = transaction;
  return recoverAddress({ hash: hashOf(serializeTransaction(unsigned)), signature: { r, s, yParity } });
}

/** Twice the base fee outlasts six full blocks in a row. */
export async function networkFees(rpc: Rpc, { baseFeePerGas }: Block): Promise<Fees> {
  const maxPriorityFeePerGas = await readPriorityFee(rpc);
  return { maxFeePerGas: 2n * baseFeePerGas + maxPriorityFeePerGas, maxPriorityFeePerGas };
}

/** Nodes accept a replacement from 10 % more on; an eighth more leaves room for their rounding. */
const RAISE_DIVISOR = 8n;
/** Beyond this multiple of what the network asks for, the fee is not what holds a transaction up. */
const FEE_FACTOR_MAX = 4n;

/** Fees that replace `fees` at the same nonce, at least the network's; undefined when more would not help. */
export function raisedFees(fees: Fees, network: Fees): Fees | undefined {
  if (fees.maxFeePerGas >= FEE_FACTOR_MAX * network.maxFeePerGas) return undefined;
  const raise = (fee: bigint, asked: bigint) => {
    const raised = fee + fee / RAISE_DIVISOR + 1n;
    return raised > asked ? raised : asked;
  };
  return {
    maxFeePerGas: raise(fees.maxFeePerGas, network.maxFeePerGas),
    maxPriorityFeePerGas: raise(fees.maxPriorityFeePerGas, network.maxPriorityFeePerGas),
  };
}

/** Where a job's transactions are. A missing receipt means unknown, never failed. */
export type TransactionStatus =
  /** Nothing has been signed yet. */
  | { readonly kind: 'unsigned' }
  /** The newest can still be mined. */
  | { readonly kind: 'pending' }
  /** One of them is in a block: a successful one, or a reverted one that was not signed again since. */
  | { readonly kind: 'mined'; readonly receipt: Receipt }
  /** One is in a block, but its receipt is not available yet. */
  | { readonly kind: 'receiptPending' }
  /** Their nonces are used up and no block has any of them: to the node's knowledge another transaction took the nonce. */
  | { readonly kind: 'nonceConsumed' };

/** `nonce` is the account's first free nonce on chain, read before this. */
export async function readTransactionStatus(
  rpc: Rpc,
  submitted: readonly RelayTransaction[],
  nonce: number,
): Promise<TransactionStatus> {
  const newest = submitted.at(-1);
  if (newest === undefined) return { kind: 'unsigned' };
  const isCurrent = (index: number) => submitted[index]?.nonce === newest.nonce;
  const receipts = await Promise.all(submitted.map(({ txHash }) => readReceipt(rpc, txHash)));
  const receipt =
    receipts.find((candidate) => candidate?.isSuccess) ??
    receipts.find((candidate, index) => candidate !== null && isCurrent(index));
  if (receipt) return { kind: 'mined', receipt };
  if (newest.nonce >= nonce) return { kind: 'pending' };
  const inBlocks = await Promise.all(submitted.map(({ txHash }) => isInBlock(rpc, txHash)));
  return { kind: inBlocks.some((isIn, index) => isIn && isCurrent(index)) ? 'receiptPending' : 'nonceConsumed' };
}

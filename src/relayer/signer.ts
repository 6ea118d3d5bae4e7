// The relayer's account: signs transactions for the chain it is told of, whatever chain the RPC says it is.
import {
  type Address,
  type Hex,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
  type TransactionSerialized,
} from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import type { RelayTransaction } from '../vocabulary/events.ts';
import type { Fees } from './fees.ts';

export interface Unsigned {
  readonly chainId: number;
  readonly nonce: number;
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
  readonly fees: Fees;
}

const PRIVATE_KEY = /^0x[0-9a-fA-F]{64}$/;

/** Throws without naming the key when it is none. */
export function openAccount(privateKey: Hex): PrivateKeyAccount {
  try {
    if (PRIVATE_KEY.test(privateKey)) return privateKeyToAccount(privateKey);
  } catch {
    // Out of the curve's range: refused like any other.
  }
  throw new Error('the relayer’s private key must be 0x and 64 hex digits, a key of secp256k1');
}

export async function signTransaction(account: PrivateKeyAccount, unsigned: Unsigned): Promise<RelayTransaction> {
  const { chainId, nonce, to, data, gas, fees } = unsigned;
  const rawTransaction = await account.signTransaction({ type: 'eip1559', chainId, nonce, to, data, gas, ...fees });
  return { chainId, nonce, txHash: keccak256(rawTransaction), rawTransaction };
}

const senders = new WeakMap<RelayTransaction, Promise<Address | undefined>>();

/** Those that the account signed: a nonce counts for its own account alone, and an operator may change the key. */
export async function signedBy(
  account: Address,
  transactions: readonly RelayTransaction[],
): Promise<readonly RelayTransaction[]> {
  const signers = await Promise.all(transactions.map(senderOf));
  return transactions.filter((_transaction, index) => signers[index] === account);
}

/** Remembered for as long as the transaction is, because a recovery takes a millisecond. */
function senderOf(transaction: RelayTransaction): Promise<Address | undefined> {
  const known = senders.get(transaction);
  if (known !== undefined) return known;
  const sender = recoverSender(transaction).catch(() => undefined);
  senders.set(transaction, sender);
  return sender;
}

async function recoverSender({ rawTransaction }: RelayTransaction): Promise<Address> {
  return recoverTransactionAddress({ serializedTransaction: rawTransaction as TransactionSerialized });
}

/** What was signed, to be signed again with other fees or at another nonce. */
export function readTransaction({ rawTransaction, chainId, nonce }: RelayTransaction): Unsigned {
  const { to, data, gas, maxFeePerGas, maxPriorityFeePerGas } = parseTransaction(rawTransaction);
  if (typeof to !== 'string' || data === undefined || gas === undefined) throw new Error('not one of our transactions');
  const fees = { maxFeePerGas: maxFeePerGas ?? 0n, maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n };
  return { chainId, nonce, to, data, gas, fees };
}

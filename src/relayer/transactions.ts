// Signs and decodes transactions of the relayer's account, always for the configured chain id and never for the one that the RPC reports.
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import {
  type Address,
  type FeeValuesEIP1559 as Fees,
  type Hex,
  parseSignature,
  parseTransaction,
  recoverAddress,
  serializeTransaction,
  type TransactionSerializableEIP1559,
} from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { keccak256 } from '../crypto/keccak.ts';
import type { RecordedTransaction, RelayTransaction } from '../vocabulary/service-payloads.ts';
import { toHex } from '../vocabulary/values.ts';

/** Throws for an invalid key, with an error that does not contain it. */
export function openAccount(privateKey: Hex): PrivateKeyAccount {
  try {
    return privateKeyToAccount(privateKey);
  } catch {
    throw new Error('the relayer’s private key must be 0x and 64 hex digits, a key of secp256k1');
  }
}

export type UnsignedTransaction = Omit<TransactionSerializableEIP1559, 'nonce'> & { readonly nonce: number };

/** Uses our own keccak256, because viem's takes 5 ms for the calldata of a long idea. */
export async function signTransaction(
  account: PrivateKeyAccount,
  unsigned: UnsignedTransaction,
): Promise<RelayTransaction> {
  const { chainId, nonce } = unsigned;
  const transaction = { type: 'eip1559', ...unsigned } as const;
  const signature = await account.sign({ hash: hashOf(serializeTransaction(transaction)) });
  const rawTransaction = serializeTransaction(transaction, parseSignature(signature));
  const txHash = hashOf(rawTransaction);
  return { chainId, nonce, txHash, rawTransaction };
}

function hashOf(bytes: Hex): Hex {
  return toHex(keccak256(Buffer.from(bytes.slice(2), 'hex')));
}

/** Returns the unsigned transaction, to be signed again with different fees or another nonce. */
export function decodeTransaction({ rawTransaction, chainId, nonce }: RelayTransaction): UnsignedTransaction & Fees {
  const { to, data, value, gas, maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(rawTransaction);
  return { chainId, nonce, to, data, value, gas, maxFeePerGas, maxPriorityFeePerGas };
}

/** Returns the maximum cost of the transaction, in wei. */
export function costOf({ value = 0n, gas = 0n, maxFeePerGas = 0n }: Omit<UnsignedTransaction, 'nonce'>): bigint {
  return value + gas * maxFeePerGas;
}

/** The “signer” of bytes that are not a signed transaction. */
const NO_SIGNER: Address = '0x';
const SIGNERS_CACHED_MAX = 10_000;

/** Caches the signer of each transaction, because recovering it takes milliseconds. */
export class Signers {
  readonly #cache = new LRUCache<Hex, Address>({ max: SIGNERS_CACHED_MAX });

  /** Returns the transactions that this account signed. An operator may change the key, and each account has its own nonces. */
  async ownOf(account: Address, transactions: readonly RecordedTransaction[]): Promise<readonly RelayTransaction[]> {
    const own: RelayTransaction[] = [];
    for (const transaction of transactions) {
      // A withheld transaction can't be sent again, so it is watched like a former account's.
      if (hasRawTransaction(transaction) && (await this.of(transaction)) === account) own.push(transaction);
    }
    return own;
  }

  remember({ txHash }: RelayTransaction, signer: Address): void {
    this.#cache.set(txHash, signer);
  }

  async of({ txHash, rawTransaction }: RelayTransaction): Promise<Address> {
    const known = this.#cache.get(txHash);
    if (known !== undefined) return known;
    // After a restart there may be hundreds of transactions, so this yields to other work.
    await setImmediate();
    const signer = await recoverSigner(rawTransaction).catch(() => NO_SIGNER);
    this.#cache.set(txHash, signer);
    return signer;
  }
}

/** Whether the log still has the transaction's bytes. Without them, the signer is unknown. */
export function hasRawTransaction(transaction: RecordedTransaction): transaction is RelayTransaction {
  return transaction.rawTransaction !== undefined;
}

async function recoverSigner(rawTransaction: Hex): Promise<Address> {
  const transaction = parseTransaction(rawTransaction);
  if (transaction.type !== 'eip1559') throw new Error('not a relay transaction');
  const { r = '0x', s = '0x', yParity = 0, v: _, ...unsigned } = transaction;
  return recoverAddress({ hash: hashOf(serializeTransaction(unsigned)), signature: { r, s, yParity } });
}

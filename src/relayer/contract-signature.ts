// Whether a wallet that is a contract, or can be deployed as one, accepts a signature (EIP-1271, ERC-6492): the universal validator of
// ERC-6492 runs in a call that changes nothing. Wallets may be hostile: their gas is bounded.
import { type Address, isErc6492Signature } from 'viem';
import { isAcceptance, validationCall } from '../crypto/validation-call.ts';
import type { Hex } from '../vocabulary/values.ts';
import { hasCode, orRevert, readCallAt } from './chain-client.ts';
import { isRejection, type Rpc } from './rpc.ts';

/** The deployment of a wallet takes some millions of gas at most. */
const VALIDATION_GAS_MAX = 10_000_000n;

export interface ContractSignature {
  readonly wallet: string;
  readonly signature: Hex;
  /** The block whose state counts. */
  readonly blockHash: Hex;
}

/** The first of the hashes that the wallet accepts the signature of; undefined for an account without code, whose private key signs. */
export async function acceptedHash(
  rpc: Rpc,
  hashes: readonly Hex[],
  { wallet, signature, blockHash }: ContractSignature,
): Promise<Hex | undefined> {
  // The validator also takes what a private key has signed, by laxer rules than ours.
  if (!isErc6492Signature(signature) && !(await hasCode(rpc, wallet as Address))) return undefined;
  for (const hash of hashes) {
    const call = { ...validationCall(wallet, hash, signature), gas: VALIDATION_GAS_MAX };
    const outcome = await orRevert(readCallAt(rpc, call, blockHash)).catch((error: unknown) => {
      if (isRejection(error) && GAS_USED_UP.test(error.message)) return { result: '0x' as const };
      throw error;
    });
    if ('result' in outcome && isAcceptance(call, outcome.result)) return hash;
  }
  return undefined;
}

const GAS_USED_UP = /out ?of ?gas|gas required exceeds|intrinsic gas|InvalidFEOpcode|invalid opcode/i;

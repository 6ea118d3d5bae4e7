// Encodes the call that asks a deployed or counterfactual contract wallet whether it accepts a signature (EIP-1271, ERC-6492), and
// decodes the result.
import {
  type Address,
  encodeDeployData,
  encodeFunctionData,
  parseAbi,
  size,
  universalSignatureValidatorAbi,
  universalSignatureValidatorByteCode,
} from 'viem';
import type { Hex } from '../vocabulary/values.ts';

const MAGIC_BYTES = 32;
/** The whole ABI word is compared, because a contract that echoes the call returns the same first four bytes. */
const MAGIC_WORD = `0x1626ba7e${'0'.repeat(56)}`;
const WALLET_ABI = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);

/** `to` is undefined if the call runs the universal validator of ERC-6492. */
export interface ValidationCall {
  readonly to: Address | undefined;
  readonly data: Hex;
}

/**
 * Calls the wallet directly if the signature is shorter than the magic bytes of ERC-6492, because the validator fails on such signatures.
 */
export function validationCall(wallet: string, hash: Hex, signature: Hex): ValidationCall {
  const address = wallet.toLowerCase() as Address;
  if (size(signature) < MAGIC_BYTES) {
    const args = [hash, signature] as const;
    return { to: address, data: encodeFunctionData({ abi: WALLET_ABI, functionName: 'isValidSignature', args }) };
  }
  const data = encodeDeployData({
    abi: universalSignatureValidatorAbi,
    bytecode: universalSignatureValidatorByteCode,
    args: [address, hash, signature],
  });
  return { to: undefined, data };
}

export function isAcceptance({ to }: ValidationCall, result: Hex): boolean {
  if (to !== undefined) return result === MAGIC_WORD;
  return result !== '0x' && BigInt(result) === 1n;
}

/** An account with delegated code (EIP-7702) is not a contract. */
export function isContractCode(code: Hex): boolean {
  return code !== '0x' && !code.startsWith('0xef0100');
}

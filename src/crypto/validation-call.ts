// The call that asks a wallet that is or can be deployed as a contract whether it accepts a signature (EIP-1271, ERC-6492), and how
// to read its result.
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
/** bytes4 as the ABI encodes it: a contract that echoes the call returns the same first bytes. */
const MAGIC_WORD = `0x1626ba7e${'0'.repeat(56)}`;
const WALLET_ABI = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);

/** `to` is undefined if the call runs the universal validator of ERC-6492, which changes nothing. */
export interface ValidationCall {
  readonly to: Address | undefined;
  readonly data: Hex;
}

/** The validator fails on a signature shorter than the magic bytes of ERC-6492: then the wallet itself is asked. */
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

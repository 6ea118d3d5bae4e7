// Verifies signatures of texts by wallets with a private key (EIP-191, version 0x45). Accepts only one encoding of a signature.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { fromHex, type Hex, toHex } from '../vocabulary/values.ts';
import { keccak256 } from './keccak.ts';

const utf8 = new TextEncoder();

const SIGNATURE_BYTES = 65;
/** v is the recovery id plus this offset. */
const V_OFFSET = 27;

/** The hash that personal_sign signs. */
export function personalMessageHash(text: string): Uint8Array {
  const message = utf8.encode(text);
  return keccak256(utf8.encode(`\x19Ethereum Signed Message:\n${message.length}${text}`));
}

export type Recovered = { readonly address: string } | { readonly problem: string };

/**
 * Recovers the lowercase address whose key signed the text. A signature must have 65 bytes (r, s and v), with s in the lower half of the
 * order (EIP-2) and v 27 or 28; the 64-byte form of EIP-2098 is rejected.
 */
export function recoverSigner(text: string, signature: Hex): Recovered {
  const bytes = fromHex(signature);
  if (bytes.length !== SIGNATURE_BYTES)
    return { problem: `has ${bytes.length} bytes, not ${SIGNATURE_BYTES}: r, s and v` };
  const recovery = (bytes[SIGNATURE_BYTES - 1] as number) - V_OFFSET;
  if (recovery !== 0 && recovery !== 1) return { problem: `has v ${recovery + V_OFFSET}, not 27 or 28` };
  try {
    const parsed = secp256k1.Signature.fromCompact(bytes.subarray(0, SIGNATURE_BYTES - 1));
    if (parsed.hasHighS()) return { problem: 'has an s in the upper half of the order (EIP-2)' };
    const point = parsed.addRecoveryBit(recovery).recoverPublicKey(personalMessageHash(text));
    const [, ...coordinates] = point.toRawBytes(false);
    const ADDRESS_BYTES = 20;
    return { address: toHex(keccak256(Uint8Array.from(coordinates)).slice(-ADDRESS_BYTES)) };
  } catch {
    return { problem: 'is not a point on secp256k1' };
  }
}

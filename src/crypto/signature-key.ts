import type { ParsedSignature } from './http-signature.ts';

const CREATED_BYTES = 8;

/**
 * What a log knows a signature by: the second of its `created` in 8 bytes, big-endian, then its 64 bytes. It is as unique
 * as the signature, which covers `created`, and grows with time: an index over it grows at its end.
 */
export function signatureKey({ created, signature }: Pick<ParsedSignature, 'created' | 'signature'>): Uint8Array {
  const key = new Uint8Array(CREATED_BYTES + signature.length);
  new DataView(key.buffer).setBigUint64(0, BigInt(created));
  key.set(signature, CREATED_BYTES);
  return key;
}

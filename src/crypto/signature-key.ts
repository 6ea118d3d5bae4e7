import type { ParsedSignature } from './http-signature.ts';

const CREATED_BYTES = 8;

/**
 * What a log knows a signature by: the second of its `created` in 8 bytes, big-endian, then its 64 bytes; as a text with a
 * character for each byte, which maps hold and which sorts as the bytes do. It is as unique as the signature, which covers
 * `created`, and grows with time: an index over it grows at its end.
 */
export function signatureKey({ created, signature }: Pick<ParsedSignature, 'created' | 'signature'>): string {
  const key = new Uint8Array(CREATED_BYTES + signature.length);
  const second = new DataView(key.buffer);
  second.setUint32(0, Math.floor(created / 2 ** 32));
  second.setUint32(4, created % 2 ** 32);
  key.set(signature, CREATED_BYTES);
  return Buffer.from(key.buffer).toString('latin1');
}

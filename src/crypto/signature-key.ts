import type { ParsedSignature } from './http-signature.ts';

const CREATED_BYTES = 8;

/**
 * What a log knows a signature by: the second of its `created` in 8 bytes, big-endian, then its 64 bytes; as a text with a
 * character for each byte, which maps hold and which sorts as the bytes do. It is as unique as the signature, which covers
 * `created`, and grows with time: an index over it grows at its end.
 */
export function signatureKey({ created, signature }: Pick<ParsedSignature, 'created' | 'signature'>): string {
  // One call with 64 arguments: any way through bytes would take a buffer outside the heap for every request.
  return secondText(created) + String.fromCharCode.apply(null, signature as unknown as number[]);
}

function secondText(created: number): string {
  const codes = new Array<number>(CREATED_BYTES);
  let rest = created;
  for (let at = CREATED_BYTES - 1; at >= 0; at--) {
    codes[at] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  return String.fromCharCode(...codes);
}

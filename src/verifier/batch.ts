// Signatures as one block of bytes, so that a whole batch changes threads in one message and nothing is cloned.
import type { Question } from './question.ts';

/** The first message of a verification thread, when libsodium is loaded; each later one answers a batch: 1 for valid, else 0. */
export const READY = 'ready';

export type Signed = Pick<Question, 'publicKey' | 'message' | 'signature'>;

const COUNT_BYTES = 4;
const LENGTH_BYTES = 4;
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const FIXED_BYTES = LENGTH_BYTES + KEY_BYTES + SIGNATURE_BYTES;

/**
 * The count of signatures, then for each the length of its message, public key, signature and message; numbers are
 * 32-bit little-endian.
 */
export function packBatch(batch: readonly Signed[]): ArrayBuffer {
  const bytes = new Uint8Array(batch.reduce((size, { message }) => size + FIXED_BYTES + message.length, COUNT_BYTES));
  const numbers = new DataView(bytes.buffer);
  numbers.setUint32(0, batch.length, true);
  let at = COUNT_BYTES;
  for (const { publicKey, message, signature } of batch) {
    numbers.setUint32(at, message.length, true);
    at += LENGTH_BYTES;
    bytes.set(publicKey, at);
    bytes.set(signature, at + KEY_BYTES);
    bytes.set(message, at + KEY_BYTES + SIGNATURE_BYTES);
    at += KEY_BYTES + SIGNATURE_BYTES + message.length;
  }
  return bytes.buffer;
}

/** What was packed, as views of the block. */
export function unpackBatch(block: ArrayBuffer): readonly Signed[] {
  const numbers = new DataView(block);
  let at = COUNT_BYTES;
  return Array.from({ length: numbers.getUint32(0, true) }, () => {
    const messageLength = numbers.getUint32(at, true);
    const publicKey = new Uint8Array(block, at + LENGTH_BYTES, KEY_BYTES);
    const signature = new Uint8Array(block, at + LENGTH_BYTES + KEY_BYTES, SIGNATURE_BYTES);
    const message = new Uint8Array(block, at + FIXED_BYTES, messageLength);
    at += FIXED_BYTES + messageLength;
    return { publicKey, message, signature };
  });
}

// Questions as one block of bytes, so that a whole batch changes threads in one message and nothing is cloned.
import type { Question } from './question.ts';

const COUNT_BYTES = 4;
const LENGTH_BYTES = 4;
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const FIXED_BYTES = LENGTH_BYTES + KEY_BYTES + SIGNATURE_BYTES;

/**
 * The count of questions, then for each the length of its message, public key, signature and message; numbers are
 * 32-bit little-endian. serveBatches in worker-program.ts is the reader.
 */
export function packBatch(questions: readonly Question[]): ArrayBuffer {
  const bytes = new Uint8Array(
    questions.reduce((size, { message }) => size + FIXED_BYTES + message.length, COUNT_BYTES),
  );
  const numbers = new DataView(bytes.buffer);
  numbers.setUint32(0, questions.length, true);
  let at = COUNT_BYTES;
  for (const { publicKey, message, signature } of questions) {
    numbers.setUint32(at, message.length, true);
    at += LENGTH_BYTES;
    bytes.set(publicKey, at);
    bytes.set(signature, at + KEY_BYTES);
    bytes.set(message, at + KEY_BYTES + SIGNATURE_BYTES);
    at += KEY_BYTES + SIGNATURE_BYTES + message.length;
  }
  return bytes.buffer;
}

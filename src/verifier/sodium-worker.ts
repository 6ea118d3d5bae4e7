// The program of a verification thread: loads libsodium's binding, whose path is its workerData, and verifies batches.
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { HEAD_BYTES, KEY_BYTES, LENGTH_BYTES, READY, SIGNATURE_BYTES } from './sodium-thread.ts';

/** The part of libsodium's binding that is used. */
interface Sodium {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

const sodium: Sodium = createRequire(import.meta.url)(workerData);

parentPort?.on('message', (block: ArrayBuffer) => {
  const numbers = new DataView(block);
  const answers: number[] = [];
  for (let at = 0; at < block.byteLength; ) {
    const messageLength = numbers.getUint32(at, true);
    const publicKey = new Uint8Array(block, at + LENGTH_BYTES, KEY_BYTES);
    const signature = new Uint8Array(block, at + LENGTH_BYTES + KEY_BYTES, SIGNATURE_BYTES);
    const message = new Uint8Array(block, at + HEAD_BYTES, messageLength);
    answers.push(sodium.crypto_sign_verify_detached(signature, message, publicKey) ? 1 : 0);
    at += HEAD_BYTES + messageLength;
  }
  const bytes = Uint8Array.from(answers);
  parentPort?.postMessage(bytes, [bytes.buffer]);
});
parentPort?.postMessage(READY);

// What a verification thread runs: loads libsodium's binding, whose path is its workerData, and answers batches of signatures.
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { READY, unpackBatch } from './batch.ts';

/** The part of libsodium's binding that is used. */
interface Sodium {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

const sodium: Sodium = createRequire(import.meta.url)(workerData);

parentPort?.on('message', (block: ArrayBuffer) => {
  const answers = Uint8Array.from(unpackBatch(block), ({ publicKey, message, signature }) =>
    sodium.crypto_sign_verify_detached(signature, message, publicKey) ? 1 : 0,
  );
  parentPort?.postMessage(answers, [answers.buffer]);
});
parentPort?.postMessage(READY);

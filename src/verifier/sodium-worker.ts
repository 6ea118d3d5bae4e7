// The worker program of SodiumThread. workerData is the path of the libsodium binding.
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { type Batch, KEY_BYTES, LENGTH_BYTES, READY, SIGNATURE_BYTES } from './sodium-thread.ts';

interface Sodium {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
  crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void;
  crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void;
}

const sodium: Sodium = createRequire(import.meta.url)(workerData);

parentPort?.on('message', (batch: Batch) => {
  const results = batch.kind === 'verify' ? verified(batch) : signed(batch);
  parentPort?.postMessage(results, [results.buffer]);
});
parentPort?.postMessage(READY);

/** Returns one byte per job, 1 if the signature is valid. */
function verified({ block, jobs }: Batch): Uint8Array<ArrayBuffer> {
  const numbers = new DataView(block);
  const results = new Uint8Array(jobs);
  for (let job = 0, at = 0; job < jobs; job++) {
    const messageLength = numbers.getUint32(at, true);
    const publicKey = new Uint8Array(block, at + LENGTH_BYTES, KEY_BYTES);
    const signature = new Uint8Array(block, at + LENGTH_BYTES + KEY_BYTES, SIGNATURE_BYTES);
    at += LENGTH_BYTES + KEY_BYTES + SIGNATURE_BYTES;
    results[job] = Number(
      sodium.crypto_sign_verify_detached(signature, new Uint8Array(block, at, messageLength), publicKey),
    );
    at += messageLength;
  }
  return results;
}

/** Returns the joined signatures. */
function signed({ block, jobs }: Batch): Uint8Array<ArrayBuffer> {
  const numbers = new DataView(block);
  const signatures = new Uint8Array(jobs * SIGNATURE_BYTES);
  const secretKey = new Uint8Array(2 * KEY_BYTES);
  let seed: Uint8Array | undefined;
  for (let job = 0, at = 0; job < jobs; job++) {
    const messageLength = numbers.getUint32(at, true);
    const due = new Uint8Array(block, at + LENGTH_BYTES, KEY_BYTES);
    // All jobs of a batch use the same key, except while keys are being rotated.
    if (seed === undefined || Buffer.compare(seed, due) !== 0)
      sodium.crypto_sign_seed_keypair(new Uint8Array(KEY_BYTES), secretKey, due);
    seed = due;
    at += LENGTH_BYTES + KEY_BYTES;
    const signature = signatures.subarray(job * SIGNATURE_BYTES, (job + 1) * SIGNATURE_BYTES);
    sodium.crypto_sign_detached(signature, new Uint8Array(block, at, messageLength), secretKey);
    at += messageLength;
  }
  return signatures;
}

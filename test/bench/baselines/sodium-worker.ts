// The worker thread for the libsodium baselines: it verifies a block of signatures and returns a block of verdicts.
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';

interface Sodium {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

const sodium = createRequire(import.meta.url)('sodium-native') as Sodium;

parentPort?.on('message', ({ block, lengths }: { readonly block: Uint8Array; readonly lengths: readonly number[] }) => {
  let at = 0;
  const verdicts = lengths.map((length) => {
    const [publicKey, signature] = [block.subarray(at, at + 32), block.subarray(at + 32, at + 96)];
    const message = block.subarray(at + 96, at + 96 + length);
    at += 96 + length;
    return sodium.crypto_sign_verify_detached(signature, message, publicKey);
  });
  parentPort?.postMessage(verdicts);
});

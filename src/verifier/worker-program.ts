// What a verification thread runs. It reaches the thread as text, because a module in TypeScript could not be loaded
// by a thread when the tests run the sources: so serveBatches must use nothing but its arguments and globals.

/** The part of libsodium's binding that is used. */
interface Sodium {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

interface Port {
  on(event: 'message', listener: (batch: ArrayBuffer) => void): void;
  postMessage(message: Uint8Array | typeof READY, transfer: readonly ArrayBuffer[]): void;
}

/** Said once, when libsodium is loaded; every later message is the answers to one batch: 1 for valid, else 0. */
export const READY = 'ready';

/** The program's text; it expects the path of libsodium's binding as workerData. */
export const WORKER_PROGRAM = `'use strict';
const { parentPort, workerData } = require('node:worker_threads');
(${serveBatches.toString()})(parentPort, require(workerData), ${JSON.stringify(READY)});`;

function serveBatches(port: Port, sodium: Sodium, ready: typeof READY): void {
  port.on('message', (batch) => {
    const numbers = new DataView(batch);
    const answers = new Uint8Array(numbers.getUint32(0, true));
    let at = 4;
    for (let i = 0; i < answers.length; i++) {
      const messageLength = numbers.getUint32(at, true);
      const publicKey = new Uint8Array(batch, at + 4, 32);
      const signature = new Uint8Array(batch, at + 36, 64);
      const message = new Uint8Array(batch, at + 100, messageLength);
      answers[i] = sodium.crypto_sign_verify_detached(signature, message, publicKey) ? 1 : 0;
      at += 100 + messageLength;
    }
    port.postMessage(answers, [answers.buffer]);
  });
  port.postMessage(ready, []);
}

// A thread that verifies with libsodium. It may fail to load or die at any time: then its unanswered jobs are handed back.
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { VerifyJob } from './verify-queue.ts';

/** The worker's file, in the sources and in the build alike. */
const WORKER = new URL(`./sodium-worker${extname(import.meta.url)}`, import.meta.url);

/** The length of the prefix of each message in a batch: a 32-bit little-endian number, before public key and signature. */
export const LENGTH_BYTES = 4;
export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
export const HEAD_BYTES = LENGTH_BYTES + KEY_BYTES + SIGNATURE_BYTES;

/** The thread's first message, once libsodium is loaded; each later one has the results of a batch: a byte for each job, 1 for valid. */
export const READY = 'ready';

export interface LostThread {
  readonly unanswered: readonly VerifyJob[];
  /** A thread that was ready may be replaced; another one that never was would fail again. */
  readonly wasReady: boolean;
  readonly reason: string;
}

export interface ThreadListener {
  /** Called before the jobs of a batch are settled: the thread takes another one meanwhile. */
  readonly onAnswer: () => void;
  readonly settle: (job: VerifyJob, isValid: boolean) => void;
  /** Called once, when the thread has ended. */
  readonly onLost: (thread: SodiumThread, lost: LostThread) => void;
}

/** An idle thread does not keep the process alive. */
export class SodiumThread {
  /** Whether libsodium is loaded; only then may batches be sent. */
  isReady = false;
  /** The number of batches sent and not yet returned. */
  batches = 0;
  readonly #worker: Worker;
  readonly #sent: (readonly VerifyJob[])[] = [];
  #reason = 'it ended';

  /** `sodiumPath` is the resolved path of the `sodium-native` module. */
  constructor(sodiumPath: string, { onAnswer, settle, onLost }: ThreadListener) {
    this.#worker = new Worker(WORKER, { workerData: sodiumPath, execArgv: [], name: 'verifier' });
    this.#worker.unref();
    this.#worker.on('message', (answers: typeof READY | Uint8Array) => {
      if (answers === READY) {
        this.isReady = true;
        return;
      }
      const batch = this.#sent.shift() ?? [];
      if (--this.batches === 0) this.#worker.unref();
      onAnswer();
      for (let index = 0; index < batch.length; index++) settle(batch[index] as VerifyJob, answers[index] === 1);
    });
    this.#worker.on('error', (error) => {
      this.#reason = error.message;
    });
    this.#worker.on('exit', () => {
      const unanswered = this.#sent.splice(0).flat();
      onLost(this, { unanswered, wasReady: this.isReady, reason: this.#reason });
    });
  }

  /** The whole batch changes threads as one block of bytes, so nothing is cloned. */
  send(batch: readonly VerifyJob[]): void {
    if (this.batches++ === 0) this.#worker.ref();
    this.#sent.push(batch);
    let size = 0;
    for (const { message } of batch) size += HEAD_BYTES + message.length;
    const block = new Uint8Array(size);
    const numbers = new DataView(block.buffer);
    let at = 0;
    for (const { publicKey, message, signature } of batch) {
      numbers.setUint32(at, message.length, true);
      block.set(publicKey, at + LENGTH_BYTES);
      block.set(signature, at + LENGTH_BYTES + KEY_BYTES);
      block.set(message, at + HEAD_BYTES);
      at += HEAD_BYTES + message.length;
    }
    this.#worker.postMessage(block.buffer, [block.buffer]);
  }

  /** Ends the thread; its unanswered jobs are handed back. */
  async close(): Promise<void> {
    this.#reason = 'it was closed';
    await this.#worker.terminate();
  }
}

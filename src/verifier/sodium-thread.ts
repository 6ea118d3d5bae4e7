// A thread that verifies and signs with libsodium. If it fails to load or exits, it returns its unfinished jobs.
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { SignJob } from './node-verifier.ts';
import type { VerifyJob } from './verify-queue.ts';

/** The extension differs between the sources and the build. */
const WORKER = new URL(`./sodium-worker${extname(import.meta.url)}`, import.meta.url);

/** The size of a message's length, a 32-bit little-endian integer. */
export const LENGTH_BYTES = 4;
/** The size of a public key or a seed. */
export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** For each job, `block` contains the message's length, the key, the signature (only for `verify`) and the message. */
export interface Batch {
  readonly kind: 'verify' | 'sign';
  readonly jobs: number;
  readonly block: ArrayBuffer;
}

/** The thread's first message, sent when libsodium is loaded. Each later message contains the results of a batch. */
export const READY = 'ready';

export interface LostThread {
  readonly unverified: readonly VerifyJob[];
  readonly unsigned: readonly SignJob[];
  /** False if libsodium never loaded: a replacement thread would fail too. */
  readonly wasReady: boolean;
  readonly reason: string;
}

export interface ThreadListener {
  /** Called before the jobs of a batch are settled, so that the thread receives its next batch first. */
  readonly onResults: () => void;
  readonly settle: (job: VerifyJob, isValid: boolean) => void;
  /** Called once, after the thread has ended. */
  readonly onLost: (thread: SodiumThread, lost: LostThread) => void;
}

export type Jobs =
  | { readonly kind: 'verify'; readonly jobs: readonly VerifyJob[] }
  | { readonly kind: 'sign'; readonly jobs: readonly SignJob[] };

/** An idle thread does not keep the process alive. */
export class SodiumThread {
  /** Whether libsodium is loaded. Batches must not be sent before. */
  isReady = false;
  /** The number of batches without results yet. */
  batches = 0;
  readonly #worker: Worker;
  readonly #sent: Jobs[] = [];
  #reason = 'it ended';

  /** `sodiumPath` is the resolved path of the `sodium-native` module. */
  constructor(sodiumPath: string, { onResults, settle, onLost }: ThreadListener) {
    this.#worker = new Worker(WORKER, { workerData: sodiumPath, execArgv: [], name: 'verifier' });
    this.#worker.unref();
    this.#worker.on('message', (results: typeof READY | Uint8Array) => {
      if (results === READY) {
        this.isReady = true;
        return;
      }
      const { kind, jobs } = this.#sent.shift() as Jobs;
      if (--this.batches === 0) this.#worker.unref();
      onResults();
      for (let index = 0; index < jobs.length; index++) {
        if (kind === 'verify') settle(jobs[index] as VerifyJob, results[index] === 1);
        else (jobs[index] as SignJob).resolve(signatureAt(results, index));
      }
    });
    this.#worker.on('error', (error) => {
      this.#reason = error.message;
    });
    this.#worker.on('exit', () => {
      const unfinished = this.#sent.splice(0);
      onLost(this, {
        unverified: unfinished.flatMap(({ kind, jobs }) => (kind === 'verify' ? jobs : [])),
        unsigned: unfinished.flatMap(({ kind, jobs }) => (kind === 'sign' ? jobs : [])),
        wasReady: this.isReady,
        reason: this.#reason,
      });
    });
  }

  /** Transfers the batch as one ArrayBuffer, so that nothing is cloned. */
  send(sent: Jobs): void {
    if (this.batches++ === 0) this.#worker.ref();
    this.#sent.push(sent);
    const { kind, jobs } = sent;
    const headBytes = LENGTH_BYTES + KEY_BYTES + (kind === 'verify' ? SIGNATURE_BYTES : 0);
    let size = 0;
    for (const { message } of jobs) size += headBytes + message.length;
    const block = new Uint8Array(size);
    const numbers = new DataView(block.buffer);
    let at = 0;
    for (const job of jobs) {
      numbers.setUint32(at, job.message.length, true);
      block.set('seed' in job ? job.seed : job.publicKey, at + LENGTH_BYTES);
      if ('signature' in job) block.set(job.signature, at + LENGTH_BYTES + KEY_BYTES);
      block.set(job.message, at + headBytes);
      at += headBytes + job.message.length;
    }
    this.#worker.postMessage({ kind, jobs: jobs.length, block: block.buffer } satisfies Batch, [block.buffer]);
  }

  /** Ends the thread and returns its unfinished jobs. */
  async close(): Promise<void> {
    this.#reason = 'it was closed';
    await this.#worker.terminate();
  }
}

function signatureAt(results: Uint8Array, index: number): Uint8Array {
  return results.subarray(index * SIGNATURE_BYTES, (index + 1) * SIGNATURE_BYTES);
}

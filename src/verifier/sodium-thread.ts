// A thread that verifies and signs with libsodium. It may fail to load or die at any time: then its unanswered jobs are handed back.
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { SignJob } from './signer.ts';
import type { VerifyJob } from './verify-queue.ts';

/** The worker's file, in the sources and in the build alike. */
const WORKER = new URL(`./sodium-worker${extname(import.meta.url)}`, import.meta.url);

/** A 32-bit little-endian number before each job: the length of its message. */
export const LENGTH_BYTES = 4;
/** Of a public key, and of a seed. */
export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** Jobs as one block of bytes: for each the length of its message, the key, to verify also the signature, and the message. */
export interface Batch {
  readonly kind: 'verify' | 'sign';
  readonly jobs: number;
  readonly block: ArrayBuffer;
}

/** The thread's first message, once libsodium is loaded; each later one has the results of a batch. */
export const READY = 'ready';

export interface LostThread {
  readonly unverified: readonly VerifyJob[];
  readonly unsigned: readonly SignJob[];
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

type Sent = { readonly verify: readonly VerifyJob[] } | { readonly sign: readonly SignJob[] };

/** An idle thread does not keep the process alive. */
export class SodiumThread {
  /** Whether libsodium is loaded; only then may batches be sent. */
  isReady = false;
  /** The number of batches sent and not yet returned. */
  batches = 0;
  readonly #worker: Worker;
  readonly #sent: Sent[] = [];
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
      const sent = this.#sent.shift() ?? { verify: [] };
      if (--this.batches === 0) this.#worker.unref();
      onAnswer();
      if ('verify' in sent) sent.verify.forEach((job, index) => void settle(job, answers[index] === 1));
      else sent.sign.forEach((job, index) => void job.resolve(signatureAt(answers, index)));
    });
    this.#worker.on('error', (error) => {
      this.#reason = error.message;
    });
    this.#worker.on('exit', () => {
      const unanswered = this.#sent.splice(0);
      onLost(this, {
        unverified: unanswered.flatMap((sent) => ('verify' in sent ? sent.verify : [])),
        unsigned: unanswered.flatMap((sent) => ('sign' in sent ? sent.sign : [])),
        wasReady: this.isReady,
        reason: this.#reason,
      });
    });
  }

  verify(jobs: readonly VerifyJob[]): void {
    const parts = jobs.map(({ publicKey, signature, message }) => [publicKey, signature, message]);
    this.#send('verify', { verify: jobs }, parts);
  }

  sign(jobs: readonly SignJob[]): void {
    const parts = jobs.map(({ seed, message }) => [seed, message]);
    this.#send('sign', { sign: jobs }, parts);
  }

  /** The whole batch changes threads as one block of bytes, so nothing is cloned. The last part of each job is its message. */
  #send(kind: Batch['kind'], sent: Sent, jobs: readonly (readonly Uint8Array[])[]): void {
    if (this.batches++ === 0) this.#worker.ref();
    this.#sent.push(sent);
    let size = 0;
    for (const parts of jobs) for (const { length } of parts) size += length;
    const block = new Uint8Array(size + jobs.length * LENGTH_BYTES);
    const numbers = new DataView(block.buffer);
    let at = 0;
    for (const parts of jobs) {
      numbers.setUint32(at, parts.at(-1)?.length ?? 0, true);
      at += LENGTH_BYTES;
      for (const part of parts) {
        block.set(part, at);
        at += part.length;
      }
    }
    this.#worker.postMessage({ kind, jobs: jobs.length, block: block.buffer } satisfies Batch, [block.buffer]);
  }

  /** Ends the thread; its unanswered jobs are handed back. */
  async close(): Promise<void> {
    this.#reason = 'it was closed';
    await this.#worker.terminate();
  }
}

function signatureAt(answers: Uint8Array, index: number): Uint8Array {
  return answers.subarray(index * SIGNATURE_BYTES, (index + 1) * SIGNATURE_BYTES);
}

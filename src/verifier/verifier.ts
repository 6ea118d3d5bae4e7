// Verifies Ed25519 signatures off the main thread by the rule of isSignedBy, with a fair queue, and signs off the main thread too. Public
// keys must have passed weaknessOf.
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { hasSmallOrderR, type SignatureVerifier } from '../crypto/verify.ts';
import { type ForumError, unavailable } from '../vocabulary/errors.ts';
import {
  createFallbackVerifier,
  createNodeSigner,
  createNodeVerifier,
  type Sign,
  type SignJob,
} from './node-verifier.ts';
import { KEY_BYTES, type LostThread, SIGNATURE_BYTES, SodiumThread } from './sodium-thread.ts';
import { type QueueLimits, type VerifyJob, VerifyQueue } from './verify-queue.ts';

const KEYS_MAX = 4096;
const PENDING_MAX = 16_384;
/**
 * Enough jobs to keep a thread busy while the main thread does other work, but few enough that the last one waits only a few milliseconds.
 * Further jobs wait in the fair queue.
 */
const IN_FLIGHT_PER_THREAD_MAX = 128;
/** Small, so that the main thread can use the first results while the thread computes the next ones. */
const BATCH_JOBS_MAX = 16;
/** One in progress and one queued. Waking a thread costs as much as verifying several signatures, so further jobs wait for the next batch. */
const BATCHES_PER_THREAD_MAX = 2;
const FALLBACK_PAUSE_MILLIS = 30;

export interface VerifierOptions {
  /** The number of libsodium threads; 0 means node:crypto's thread pool. Defaults to the number of cores minus one, but at least one. */
  readonly threads?: number;
  /** The number of signatures that node:crypto verifies before the threads start. Defaults to 0. */
  readonly threadsAfter?: number;
  /** The number of key objects cached for node:crypto. */
  readonly keysMax?: number;
  /** The maximum number of pending signatures. */
  readonly pendingMax?: number;
  readonly queueLimits?: Partial<QueueLimits>;
  /** Called when a thread has exited or failed to load libsodium; node:crypto takes over its jobs. */
  readonly onThreadLost?: (reason: string) => void;
  readonly fallbackPauseMillis?: number;
  /** Larger batches take less time on the main thread, but delay results. */
  readonly batchJobsMax?: number;
  /** A binding to load instead of the installed one. */
  readonly sodiumPath?: string;
}

export interface SignatureVerifierPool {
  readonly verify: SignatureVerifier;
  readonly sign: Sign;
  /** Ends the threads. node:crypto completes pending jobs. */
  readonly close: () => Promise<void>;
  /** The number of threads that have loaded libsodium. */
  readonly readyThreads: () => number;
}

/** Until a libsodium thread is ready, node:crypto verifies. The fallback verifier decides rejected signatures whose R has small order. */
export function createVerifier(options: VerifierOptions = {}): SignatureVerifierPool {
  const { pendingMax = PENDING_MAX, batchJobsMax = BATCH_JOBS_MAX, onThreadLost = () => {} } = options;
  const threadCount = options.threads ?? Math.max(1, availableParallelism() - 1);
  const inFlightMax = IN_FLIGHT_PER_THREAD_MAX * Math.max(1, threadCount);
  const verifyByNode = createNodeVerifier(options.keysMax ?? KEYS_MAX, settle);
  const verifyByFallback = createFallbackVerifier(options.fallbackPauseMillis ?? FALLBACK_PAUSE_MILLIS);
  const signByNode = createNodeSigner();
  const threads = new Set<SodiumThread>();
  const waiting = new VerifyQueue(options.queueLimits);
  /** Started jobs that have not been sent yet. */
  const due: VerifyJob[] = [];
  /** Jobs of the current turn of the event loop, in which a batch of commands gets all its responses. */
  const toSign: SignJob[] = [];
  let inFlight = 0;
  let isClosed = false;

  const sodiumPath = threadCount === 0 ? undefined : (options.sodiumPath ?? findSodium(onThreadLost));
  let untilThreads = options.threadsAfter ?? 0;
  if (untilThreads === 0) addThreads();

  function addThreads(): void {
    for (let i = 0; i < threadCount && sodiumPath !== undefined; i++) addThread(sodiumPath);
  }

  function addThread(path: string): void {
    threads.add(new SodiumThread(path, { onResults: sendDue, settle, onLost }));
  }

  /** Jobs started in one turn of the event loop are sent together. */
  function start(job: VerifyJob): void {
    inFlight++;
    if (untilThreads > 0 && --untilThreads === 0) addThreads();
    if (due.length === 0) setImmediate(sendDue);
    due.push(job);
    if (due.length === batchJobsMax) sendDue();
  }

  function sendDue(): void {
    while (due.length + toSign.length > 0) {
      let least: SodiumThread | undefined;
      for (const thread of threads)
        if (thread.isReady && (least === undefined || thread.batches < least.batches)) least = thread;
      if (least === undefined) {
        due.splice(0).forEach(verifyByNode);
        toSign.splice(0).forEach(signByNode);
      } else if (toSign.length > 0) {
        least.send({ kind: 'sign', jobs: toSign.splice(0) });
      } else if (least.batches < BATCHES_PER_THREAD_MAX) {
        least.send({ kind: 'verify', jobs: due.splice(0, batchJobsMax) });
      } else return;
    }
  }

  function settle(job: VerifyJob, outcome: boolean | Error): void {
    inFlight--;
    if (outcome instanceof Error) job.reject(outcome);
    else if (outcome || !hasSmallOrderR(job.signature)) job.resolve(outcome);
    else if (!verifyByFallback(job)) job.reject(tooManyWaiting());
    const next = waiting.size === 0 ? undefined : waiting.take();
    if (next !== undefined) start(next);
  }

  function onLost(thread: SodiumThread, { unverified, unsigned, wasReady, reason }: LostThread): void {
    threads.delete(thread);
    unverified.forEach(verifyByNode);
    unsigned.forEach(signByNode);
    sendDue();
    if (isClosed) return;
    onThreadLost(reason);
    if (wasReady && sodiumPath !== undefined) addThread(sodiumPath);
  }

  return {
    verify(publicKey, message, signature, caller) {
      if (publicKey.length !== KEY_BYTES || signature.length !== SIGNATURE_BYTES) return Promise.resolve(false);
      if (isClosed) return Promise.reject(unavailable('the service is shutting down'));
      if (inFlight + waiting.size >= pendingMax) return Promise.reject(tooManyWaiting());
      return new Promise((resolve, reject) => {
        const job = { publicKey, message, signature, resolve, reject };
        if (inFlight < inFlightMax && waiting.size === 0) start(job);
        else if (!waiting.push(job, caller)) reject(tooManyWaiting());
      });
    },
    sign: (seed, message) =>
      new Promise((resolve, reject) => {
        if (toSign.length === 0) setImmediate(sendDue);
        toSign.push({ seed, message, resolve, reject });
      }),
    async close() {
      isClosed = true;
      await Promise.all([...threads].map((thread) => thread.close()));
    },
    readyThreads: () => [...threads].filter(({ isReady }) => isReady).length,
  };
}

function findSodium(onMissing: (reason: string) => void): string | undefined {
  try {
    return createRequire(import.meta.url).resolve('sodium-native');
  } catch (error) {
    onMissing(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

function tooManyWaiting(): ForumError {
  return unavailable('too many signatures are waiting to be verified; retry');
}

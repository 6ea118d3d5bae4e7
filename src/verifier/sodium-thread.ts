// One thread that verifies with libsodium. It may fail to load or die at any time: then every question it still holds is handed back.
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { packBatch, READY } from './batch.ts';
import type { Question } from './question.ts';

/** From the sources as from what is built of them. */
const WORKER = new URL(`./sodium-worker${extname(import.meta.url)}`, import.meta.url);

export interface SodiumThread {
  /** Whether libsodium is loaded there; only then may batches be sent. */
  readonly isReady: () => boolean;
  /** Questions sent and not answered yet. */
  readonly load: () => number;
  readonly send: (batch: readonly Question[]) => void;
  /** Ends the thread; what it still holds is handed back as lost. */
  readonly close: () => Promise<void>;
}

export interface LostThread {
  readonly unanswered: readonly Question[];
  /** Whether it had been ready: one that was may be replaced, one that never was would fail again. */
  readonly wasReady: boolean;
  readonly reason: string;
}

export interface ThreadListener {
  readonly onAnswer: (question: Question, isValid: boolean) => void;
  /** Called once, when the thread has ended. */
  readonly onLost: (lost: LostThread) => void;
}

/** `sodiumPath` is the resolved path of the `sodium-native` module. An idle thread does not keep the process alive. */
export function startSodiumThread(sodiumPath: string, listener: ThreadListener): SodiumThread {
  const worker = new Worker(WORKER, { workerData: sodiumPath, execArgv: [], name: 'verifier' });
  const sent: (readonly Question[])[] = [];
  let load = 0;
  let isReady = false;
  let isLost = false;
  let reason = 'it ended';
  worker.unref();

  worker.on('message', (message: typeof READY | Uint8Array) => {
    if (message === READY) isReady = true;
    else answer(sent.shift() ?? [], message);
  });
  worker.on('error', (error) => {
    reason = error.message;
  });
  worker.on('exit', () => {
    isLost = true;
    listener.onLost({ unanswered: sent.splice(0).flat(), wasReady: isReady, reason });
  });

  function answer(batch: readonly Question[], answers: Uint8Array): void {
    load -= batch.length;
    if (load === 0) worker.unref();
    for (const [index, question] of batch.entries()) listener.onAnswer(question, answers[index] === 1);
  }

  return {
    isReady: () => isReady && !isLost,
    load: () => load,
    send(batch) {
      if (load === 0) worker.ref();
      load += batch.length;
      sent.push(batch);
      const block = packBatch(batch);
      worker.postMessage(block, [block]);
    },
    async close() {
      reason = 'it was closed';
      await worker.terminate();
    },
  };
}

// Verifies Ed25519 signatures off the main thread, by the rule of isSignedBy. Keys must be such as weaknessOf lets pass.
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { hasSmallOrderR, type SignatureVerifier } from '../crypto/verify.ts';
import { createFallbackVerifier } from './fallback-verifier.ts';
import { createNodeVerifier } from './node-verifier.ts';
import { type Question, TOO_MANY_WAITING, unavailable } from './question.ts';
import { type LostThread, type SodiumThread, startSodiumThread } from './sodium-thread.ts';

const KEYS_MAX = 4096;
const PENDING_MAX = 16_384;
/** Small, so that the first answers are used while the next are found: neither thread waits for the other. */
const BATCH_QUESTIONS_MAX = 8;
const FALLBACK_PAUSE_MILLIS = 30;
const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const CLOSED = 'the service is shutting down';

export interface VerifierOptions {
  /** Threads with libsodium; 0 leaves everything to node:crypto's thread pool. By default one less than there are cores, at least one. */
  readonly threads?: number;
  /** Key objects kept for node:crypto. */
  readonly keysMax?: number;
  /** Signatures waiting for an answer, beyond which verify throws FORUM_ERR_UNAVAILABLE. */
  readonly pendingMax?: number;
  /** Told when a thread has died or could not load libsodium; its questions are answered by node:crypto. */
  readonly onThreadLost?: (reason: string) => void;
  /** From one signature of the fallback verifier to its next. */
  readonly fallbackPauseMillis?: number;
  /** The binding to load in place of the installed one. */
  readonly sodiumPath?: string;
}

export interface SignatureVerifierPool {
  /** False, too, for a key or a signature of a wrong length. Throws FORUM_ERR_UNAVAILABLE when too many wait or after close. */
  readonly verify: SignatureVerifier;
  /** Ends the threads; signatures already asked about still get their answers. */
  readonly close: () => Promise<void>;
  /** How many threads verify with libsodium now. */
  readonly readyThreads: () => number;
}

/** libsodium verifies; node:crypto does while no thread is ready. What either refuses for its R goes to the fallback verifier. */
export function createVerifier(options: VerifierOptions = {}): SignatureVerifierPool {
  const { keysMax = KEYS_MAX, pendingMax = PENDING_MAX, onThreadLost = () => {} } = options;
  const threadCount = options.threads ?? Math.max(1, availableParallelism() - 1);
  const askNode = createNodeVerifier(keysMax, onAnswer);
  const askFallback = createFallbackVerifier(options.fallbackPauseMillis ?? FALLBACK_PAUSE_MILLIS);
  const threads = new Set<SodiumThread>();
  let gathered: Question[] = [];
  let pending = 0;
  let isClosed = false;

  function addThread(sodiumPath: string): void {
    const thread = startSodiumThread(sodiumPath, { onAnswer, onLost });
    threads.add(thread);

    function onLost({ unanswered, wasReady, reason }: LostThread): void {
      threads.delete(thread);
      for (const question of unanswered) askNode(question);
      if (isClosed) return;
      onThreadLost(reason);
      if (wasReady) addThread(sodiumPath);
    }
  }

  function onAnswer(question: Question, isValid: boolean): void {
    if (isValid || !hasSmallOrderR(question.signature)) question.resolve(isValid);
    else askFallback(question);
  }

  /** Everything asked in one turn of the event loop goes out together. */
  function gather(question: Question): void {
    if (gathered.length === 0) setImmediate(sendGathered);
    gathered.push(question);
    if (gathered.length === BATCH_QUESTIONS_MAX) sendGathered();
  }

  function sendGathered(): void {
    const questions = gathered;
    gathered = [];
    for (let at = 0; at < questions.length; at += BATCH_QUESTIONS_MAX) {
      const batch = questions.slice(at, at + BATCH_QUESTIONS_MAX);
      const thread = leastLoaded(threads);
      if (thread === undefined) for (const question of batch) askNode(question);
      else thread.send(batch);
    }
  }

  if (threadCount > 0) {
    const sodiumPath = options.sodiumPath ?? findSodium(onThreadLost);
    for (let i = 0; i < threadCount && sodiumPath !== undefined; i++) addThread(sodiumPath);
  }

  function ask(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
    pending++;
    return new Promise((resolve, reject) => {
      gather({ publicKey, message, signature, resolve: settled(resolve), reject: settled(reject) });
    });
  }

  function settled<Answer>(settle: (answer: Answer) => void): (answer: Answer) => void {
    return (answer) => {
      pending--;
      settle(answer);
    };
  }

  return {
    verify(publicKey, message, signature) {
      if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return Promise.resolve(false);
      if (isClosed || pending >= pendingMax) return Promise.reject(unavailable(isClosed ? CLOSED : TOO_MANY_WAITING));
      return ask(publicKey, message, signature);
    },
    async close() {
      isClosed = true;
      await Promise.all([...threads].map((thread) => thread.close()));
    },
    readyThreads: () => [...threads].filter((thread) => thread.isReady()).length,
  };
}

/** While a thread is still loading libsodium, node:crypto serves. */
function leastLoaded(threads: Iterable<SodiumThread>): SodiumThread | undefined {
  let least: SodiumThread | undefined;
  for (const thread of threads) {
    if (thread.isReady() && (least === undefined || thread.load() < least.load())) least = thread;
  }
  return least;
}

function findSodium(onMissing: (reason: string) => void): string | undefined {
  try {
    return createRequire(import.meta.url).resolve('sodium-native');
  } catch (error) {
    onMissing(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

// Runs steps of jobs concurrently: at most one step per job, and at most STEPS_AT_ONCE in total. If a request hangs, its step keeps its
// slot until the request times out; rounds do not wait for it.
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';

const STEPS_AT_ONCE = 16;
/** More than the number of steps that can end after a job is read and before its own step runs. */
const ENDS_KEPT = 10_000;

export class JobBoard {
  readonly #steps = new ConcurrencyLimit({ max: STEPS_AT_ONCE });
  readonly #running = new Map<string, Promise<void>>();
  /** The number of steps that have ended. */
  #ends = 0;
  /** The value of #ends when the last step of each job ended. */
  readonly #lastEnds = new LRUCache<string, number>({ max: ENDS_KEPT });
  #turn: Promise<void> = Promise.resolve();

  /** Must be read before the state of a job is read. */
  get logicalTime(): number {
    return this.#ends;
  }

  /**
   * Resolves when the step has ended. Does nothing if another step of the job is running or has ended since `readAfter`, because that
   * step may have signed a transaction that the caller has not read.
   */
  async run(name: string, readAfter: number, step: () => Promise<void>): Promise<void> {
    if (this.#running.has(name) || (this.#lastEnds.get(name) ?? 0) > readAfter) return;
    const running = this.#steps.run(step).finally(() => {
      this.#lastEnds.set(name, ++this.#ends);
      this.#running.delete(name);
    });
    this.#running.set(name, running);
    await running;
  }

  /** Resolves in a turn of the event loop that no other caller shares, so that the CPU work of several steps does not block the thread. */
  ownTurn(): Promise<void> {
    this.#turn = this.#turn.then(() => setImmediate());
    return this.#turn;
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled([...this.#running.values()]);
  }
}

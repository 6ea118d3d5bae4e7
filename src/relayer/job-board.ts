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
  readonly #underWay = new Map<string, Promise<void>>();
  /** The number of steps that have ended; by job, the value of this number when its last step ended. */
  #ends = 0;
  readonly #lastEnds = new LRUCache<string, number>({ max: ENDS_KEPT });
  #turn: Promise<void> = Promise.resolve();

  /** A logical time, to be read before the state of a job is read. */
  get moment(): number {
    return this.#ends;
  }

  /**
   * Resolves when the step has ended. Does nothing if another step of the job is running or has ended since `readAfter`, because that
   * step may have signed a transaction that the caller has not read.
   */
  async run(name: string, readAfter: number, step: () => Promise<void>): Promise<void> {
    if (this.#underWay.has(name) || (this.#lastEnds.get(name) ?? 0) > readAfter) return;
    const running = this.#steps.run(step).finally(() => {
      this.#lastEnds.set(name, ++this.#ends);
      this.#underWay.delete(name);
    });
    this.#underWay.set(name, running);
    await running;
  }

  /** Gives each caller its own turn of the event loop, so that the CPU work of several steps does not block the thread. */
  ownTurn(): Promise<void> {
    this.#turn = this.#turn.then(() => setImmediate());
    return this.#turn;
  }

  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled([...this.#underWay.values()]);
  }
}

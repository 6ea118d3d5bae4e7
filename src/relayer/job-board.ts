// Runs steps of jobs concurrently: at most one step of each job and at most STEPS_AT_ONCE in all. A step whose request hangs holds its slot until
// the request times out; rounds do not wait for it.
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';

const STEPS_AT_ONCE = 16;
/** More steps than can end between the read of a job and its own step. */
const ENDS_KEPT = 10_000;

export class JobBoard {
  readonly #steps = new ConcurrencyLimit({ max: STEPS_AT_ONCE });
  readonly #underWay = new Map<string, Promise<void>>();
  /** Steps that have ended; by job, the count when its last step ended. */
  #ends = 0;
  readonly #lastEnds = new LRUCache<string, number>({ max: ENDS_KEPT });
  #turn: Promise<void> = Promise.resolve();

  /** A logical time. Read it before the state of a job is read. */
  get moment(): number {
    return this.#ends;
  }

  /**
   * Resolves when the step has ended. Does nothing if another step of the job is running or has ended since `readAfter`: it may have signed a
   * transaction that the caller has not read.
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

  /** Gives each caller a turn of the event loop alone, so that CPU work of several steps does not block the thread at a stretch. */
  ownTurn(): Promise<void> {
    this.#turn = this.#turn.then(() => setImmediate());
    return this.#turn;
  }

  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled([...this.#underWay.values()]);
  }
}

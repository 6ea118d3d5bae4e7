// The steps that are under way: at most one of a job, so many at once, and none that waits for another job. A step whose request to the
// node hangs takes a place until it times out; the rounds go on without it.
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { Slots } from '../forum/slots.ts';

const STEPS_AT_ONCE = 16;
/** More jobs than end a step between reading a job and its turn. */
const ENDS_KEPT = 10_000;

export class JobBoard {
  readonly #slots = new Slots(STEPS_AT_ONCE);
  readonly #underWay = new Map<string, Promise<void>>();
  /** The steps that have ended so far, and the last one of each job among them. */
  #ends = 0;
  readonly #lastEnds = new LRUCache<string, number>({ max: ENDS_KEPT });

  #turn: Promise<void> = Promise.resolve();

  /** A moment, to be taken before the state of a job is read. */
  get moment(): number {
    return this.#ends;
  }

  /**
   * Resolves when the step has ended. Nothing is done where a step of the job is under way, or has ended after the moment before which
   * its state was read: it may have signed a transaction that the reader did not see.
   */
  async run(name: string, readAfter: number, step: () => Promise<void>): Promise<void> {
    if (this.#underWay.has(name) || (this.#lastEnds.get(name) ?? 0) > readAfter) return;
    const running = this.#inSlot(step).finally(() => {
      this.#lastEnds.set(name, ++this.#ends);
      this.#underWay.delete(name);
    });
    this.#underWay.set(name, running);
    await running;
  }

  /** Resolves in a turn of the event loop that no other caller gets: long work of several steps must not hold the thread at a stretch. */
  ownTurn(): Promise<void> {
    this.#turn = this.#turn.then(() => setImmediate());
    return this.#turn;
  }

  /** Resolves when no step is under way. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled([...this.#underWay.values()]);
  }

  async #inSlot(step: () => Promise<void>): Promise<void> {
    const slot = this.#slots.open();
    await slot.take();
    try {
      await step();
    } finally {
      slot.release();
    }
  }
}

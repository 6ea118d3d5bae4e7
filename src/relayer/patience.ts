// How long the relayer waits: between attempts at a job that fails, and before a simulated failure counts. Kept while one node holds the
// lease; a restart begins again, which costs time and nothing else.
import type { Millis } from '../vocabulary/values.ts';
import type { Block } from './chain-client.ts';

const PAUSE_MILLIS_MAX = 30_000;

interface Pause {
  readonly millis: Millis;
  readonly endsAt: Millis;
}

/** Jobs that are set aside, each with a pause that doubles. */
export class Pauses {
  readonly #clock: () => Millis;
  readonly #pauses = new Map<string, Pause>();

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  isPaused(name: string): boolean {
    const pause = this.#pauses.get(name);
    return pause !== undefined && this.#clock() < pause.endsAt;
  }

  /** Whether its latest step failed. */
  has(name: string): boolean {
    return this.#pauses.has(name);
  }

  /** Sets it aside for twice as long as the last time, at first for `firstMillis`. */
  defer(name: string, firstMillis: Millis): void {
    const { millis: last = 0 } = this.#pauses.get(name) ?? {};
    const millis = Math.min(PAUSE_MILLIS_MAX, Math.max(firstMillis, 2 * last));
    this.#pauses.set(name, { millis, endsAt: this.#clock() + millis });
  }

  end(name: string): void {
    this.#pauses.delete(name);
  }
}

const REFUSAL_MILLIS_MIN = 180_000;
const REFUSAL_BLOCKS_MIN = 3;
const REFUSAL_LOOKS_MIN = 3;

interface Refusal {
  readonly since: Millis;
  readonly sinceBlock: number;
  looks: number;
}

/**
 * Calls that revert in simulations. One answer proves nothing: a backend may be behind or broken, a contract paused. So a refusal counts
 * once it was seen several times, over minutes and blocks.
 */
export class Refusals {
  readonly #clock: () => Millis;
  readonly #refusals = new Map<string, Refusal>();

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  /** Notes one more, and returns whether it counts. */
  isLasting(name: string, head: Block, confirmations: number): boolean {
    const refusal = this.#refusals.get(name) ?? { since: this.#clock(), sinceBlock: head.number, looks: 0 };
    this.#refusals.set(name, refusal);
    refusal.looks++;
    const { since, sinceBlock, looks } = refusal;
    const blocks = head.number - sinceBlock;
    return (
      looks >= REFUSAL_LOOKS_MIN &&
      blocks >= Math.max(REFUSAL_BLOCKS_MIN, confirmations) &&
      this.#clock() - since >= REFUSAL_MILLIS_MIN
    );
  }

  end(name: string): void {
    this.#refusals.delete(name);
  }
}

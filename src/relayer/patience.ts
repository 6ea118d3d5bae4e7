// How long the relayer waits between attempts at a failing job, and before it accepts a simulated revert as final. A restart loses this
// state and only causes longer waits.
import type { Millis } from '../vocabulary/values.ts';
import type { Block } from './chain-client.ts';

const PAUSE_MILLIS_MAX = 30_000;

interface Pause {
  readonly millis: Millis;
  readonly endsAt: Millis;
}

/** Exponential backoff of each job. */
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

  /** Whether the job's latest step failed. */
  has(name: string): boolean {
    return this.#pauses.has(name);
  }

  /** Pauses the job for twice its last pause, or for `firstMillis`. */
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
const SIMULATIONS_MIN = 3;

interface Refusal {
  readonly since: Millis;
  readonly sinceBlock: number;
  simulations: number;
}

/**
 * Calls that revert in simulations. One simulation proves nothing: a node may lag or be broken, or a contract may be paused. So a revert
 * is final only after several simulations over minutes and blocks.
 */
export class Refusals {
  readonly #clock: () => Millis;
  readonly #refusals = new Map<string, Refusal>();

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  /** Counts a reverted simulation, and returns whether the job has failed. */
  isLasting(name: string, head: Block, confirmations: number): boolean {
    const refusal = this.#refusals.get(name) ?? { since: this.#clock(), sinceBlock: head.number, simulations: 0 };
    this.#refusals.set(name, refusal);
    refusal.simulations++;
    const { since, sinceBlock, simulations } = refusal;
    const blocks = head.number - sinceBlock;
    return (
      simulations >= SIMULATIONS_MIN &&
      blocks >= Math.max(REFUSAL_BLOCKS_MIN, confirmations) &&
      this.#clock() - since >= REFUSAL_MILLIS_MIN
    );
  }

  end(name: string): void {
    this.#refusals.delete(name);
  }
}

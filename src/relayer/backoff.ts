// Decides how long the relayer waits between attempts at a failing job, and when it accepts a simulated revert as final. Losing this state
// in a restart only causes longer waits.
import type { Millis } from '../vocabulary/values.ts';
import type { Block } from './chain-client.ts';

const PAUSE_MILLIS_MAX = 30_000;

interface Pause {
  readonly millis: Millis;
  readonly endsAt: Millis;
}

/** The exponential backoff of each job. */
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

const REVERT_MILLIS_MIN = 180_000;
const REVERT_BLOCKS_MIN = 3;
const SIMULATIONS_MIN = 3;

interface RevertRun {
  readonly since: Millis;
  readonly sinceBlock: number;
  simulations: number;
}

/**
 * Counts calls that revert in simulations. One simulation proves nothing: a node may lag or be broken, or a contract may be paused. So a
 * revert is final only after several simulations over minutes and blocks.
 */
export class SimulatedReverts {
  readonly #clock: () => Millis;
  readonly #reverts = new Map<string, RevertRun>();

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  /** Counts a reverted simulation, and returns whether the job has failed. */
  isLasting(name: string, head: Block, confirmations: number): boolean {
    const run = this.#reverts.get(name) ?? { since: this.#clock(), sinceBlock: head.number, simulations: 0 };
    this.#reverts.set(name, run);
    run.simulations++;
    const { since, sinceBlock, simulations } = run;
    const blocks = head.number - sinceBlock;
    return (
      simulations >= SIMULATIONS_MIN &&
      blocks >= Math.max(REVERT_BLOCKS_MIN, confirmations) &&
      this.#clock() - since >= REVERT_MILLIS_MIN
    );
  }

  end(name: string): void {
    this.#reverts.delete(name);
  }
}

// How many long-lived responses each caller holds: one costs memory for as long as it lasts.
import { ForumError } from '../vocabulary/errors.ts';

const RETRY_AFTER_SECONDS = 5;

export class Quota {
  readonly #perCallerMax: number;
  readonly #what: string;
  readonly #held = new Map<string, number>();
  #total = 0;

  /** `what` names them for the caller, e.g. `streams from your address`. */
  constructor(perCallerMax: number, what: string) {
    this.#perCallerMax = perCallerMax;
    this.#what = what;
  }

  get total(): number {
    return this.#total;
  }

  /** Throws FORUM_ERR_RATE if the caller holds as many as it may. */
  require(caller: string): void {
    if ((this.#held.get(caller) ?? 0) < this.#perCallerMax) return;
    const detail = `too many ${this.#what}: at most ${this.#perCallerMax} at a time`;
    throw new ForumError('FORUM_ERR_RATE', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  }

  /** Counts one more of the caller until the returned function is called; throws FORUM_ERR_RATE. */
  hold(caller: string): () => void {
    this.require(caller);
    this.#add(caller, 1);
    let isHeld = true;
    return () => {
      if (isHeld) this.#add(caller, -1);
      isHeld = false;
    };
  }

  #add(caller: string, change: 1 | -1): void {
    this.#total += change;
    const held = (this.#held.get(caller) ?? 0) + change;
    if (held > 0) this.#held.set(caller, held);
    else this.#held.delete(caller);
  }
}

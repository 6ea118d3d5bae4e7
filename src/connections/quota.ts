// Limits the long-lived responses of each caller, because each takes memory until it closes.
import { ForumError } from '../vocabulary/errors.ts';

const RETRY_AFTER_SECONDS = 5;

export class Quota {
  readonly #perCallerMax: number;
  readonly #what: string;
  readonly #open = new Map<string, number>();
  #total = 0;

  /** `what` names the responses in errors, e.g. `streams from your address`. */
  constructor(perCallerMax: number, what: string) {
    this.#perCallerMax = perCallerMax;
    this.#what = what;
  }

  get total(): number {
    return this.#total;
  }

  /** Throws FORUM_ERR_RATE if the caller has reached its limit. */
  require(caller: string): void {
    if ((this.#open.get(caller) ?? 0) < this.#perCallerMax) return;
    const detail = `too many ${this.#what}: at most ${this.#perCallerMax} at a time`;
    throw new ForumError('FORUM_ERR_RATE', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  }

  /** Counts one more response of the caller until the returned function is called. Throws FORUM_ERR_RATE. */
  acquire(caller: string): () => void {
    this.require(caller);
    this.#add(caller, 1);
    let isCounted = true;
    return () => {
      if (isCounted) this.#add(caller, -1);
      isCounted = false;
    };
  }

  #add(caller: string, change: 1 | -1): void {
    this.#total += change;
    const open = (this.#open.get(caller) ?? 0) + change;
    if (open > 0) this.#open.set(caller, open);
    else this.#open.delete(caller);
  }
}

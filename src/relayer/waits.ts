// How long something has been going on, by the injected clock: a stuck transaction, a late receipt, a pause between attempts.
import type { Millis } from '../vocabulary/values.ts';

export class Waits {
  readonly #clock: () => Millis;
  readonly #since = new Map<string, Millis>();

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  /** Milliseconds since the first call with this key. */
  elapsed(key: string): Millis {
    const since = this.#since.get(key);
    if (since === undefined) this.#since.set(key, this.#clock());
    return since === undefined ? 0 : this.#clock() - since;
  }

  isOn(key: string): boolean {
    return this.#since.has(key);
  }

  end(...keys: readonly string[]): void {
    for (const key of keys) this.#since.delete(key);
  }
}

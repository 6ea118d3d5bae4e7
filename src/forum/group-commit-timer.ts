// Decides when a batch is written. A commit costs as much as several moves, and on a database server as much as dozens. So commands that
// arrive in one turn of the event loop are committed together. If appends take longer than the shortest timer, a batch waits for as many
// commands as the last batch had, but at most COMMANDS_AWAITED_MAX, and no longer than the last append took or WAIT_MS_MAX.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Millis } from '../vocabulary/values.ts';

/** A single command waits for one turn. Under load a commit costs more than two turns. */
const TURNS_MAX = 2;
const COMMANDS_AWAITED_MAX = 24;
const WAIT_MS_MAX = 2;
const TIMER_MS_MIN = 1;

export class GroupCommitTimer {
  /** The duration of the last append. */
  appendMillis: Millis = 0;
  #awaited = 0;
  #onComplete: (() => void) | undefined;

  /** Resolves when the batch has the expected number of commands, or when the time is up. */
  async wait(batch: { readonly length: number }): Promise<void> {
    for (let turns = 0, before = 0; turns < TURNS_MAX && before < batch.length; turns++) {
      before = batch.length;
      await nextTurn();
    }
    const millis = Math.min(this.appendMillis, WAIT_MS_MAX);
    if (batch.length < this.#awaited && millis >= TIMER_MS_MIN) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, millis);
      this.#onComplete = resolve;
      await promise;
      clearTimeout(timer);
      this.#onComplete = undefined;
    }
    this.#awaited = Math.min(batch.length, COMMANDS_AWAITED_MAX);
  }

  /** Called when the batch gains a command. */
  noteSize(commands: number): void {
    if (commands >= this.#awaited) this.#onComplete?.();
  }
}

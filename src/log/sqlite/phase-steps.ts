// Moves the overdue rows of chamber_phases on, in steps of a bounded size. It owns their timer.
import type { Millis } from '../../vocabulary/values.ts';
import type { Access } from './access.ts';
import { ChamberPhases } from './chamber-phases.ts';

/** Chambers that advance to their phase at a time, and the pause before the next ones: a step takes about 1 ms. */
const PHASES_PER_STEP = 100;
const PHASE_STEP_PAUSE_MS = 20;

export class PhaseSteps {
  readonly #access: Access;
  readonly #phases: ChamberPhases;
  #next: NodeJS.Timeout | undefined;

  constructor(access: Access) {
    this.#access = access;
    this.#phases = new ChamberPhases(access.file.db);
  }

  /** `now` was persisted before, so that no row is ahead of the log's clock. */
  advance(now: Millis): void {
    const advanced = this.#access.write(() => this.#phases.advance(now, PHASES_PER_STEP));
    if (advanced < PHASES_PER_STEP || this.#next !== undefined) return;
    this.#next = setTimeout(() => {
      this.#next = undefined;
      try {
        this.advance(now);
      } catch {
        // It is tried again with the next reading of the clock.
      }
    }, PHASE_STEP_PAUSE_MS).unref();
  }

  close(): void {
    clearTimeout(this.#next);
  }
}

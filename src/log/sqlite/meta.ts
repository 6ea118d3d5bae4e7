// Facts that are kept with the log, and its clock.
import type { Statement } from 'better-sqlite3';
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { LogMeta } from '../store.ts';
import type { Access } from './access.ts';
import type { ChamberPhases } from './chamber-phases.ts';
import { CLOCK_HIGH_WATER_MARK, readClock } from './clock.ts';

/** The clock takes as much room as a large move after a failed write: its success shows that moves fit again. */
const PROBE_BYTES = 65_536;
/** Chambers that advance to their phase at a time, and the pause before the next ones: a step takes about 1 ms. */
const PHASES_PER_STEP = 100;
const PHASE_STEP_PAUSE_MS = 20;

export class SqliteMeta implements LogMeta {
  readonly #access: Access;
  readonly #recall: Statement<[string], string>;
  readonly #remember: Statement<[string, string]>;
  readonly #phases: ChamberPhases;
  readonly #persist: Statement<[string, string]>;
  #lastAt: Millis;
  #nextStep: NodeJS.Timeout | undefined;

  constructor(access: Access, phases: ChamberPhases) {
    const { db } = access.file;
    this.#access = access;
    this.#phases = phases;
    this.#recall = db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck();
    this.#remember = db.prepare('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)');
    this.#persist = db.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
    this.#lastAt = readClock(db);
  }

  get lastAt(): Millis {
    return this.#lastAt;
  }

  get writeFailure(): ForumError | undefined {
    return this.#access.writeFailure;
  }

  recall(name: string): Promise<string | undefined> {
    return this.#access.read(() => this.#recall.get(name));
  }

  async remember(name: string, value: string): Promise<void> {
    await this.#access.read(() => this.#remember.run(name, value));
  }

  async persistClock(at: Millis): Promise<void> {
    this.#access.write(() =>
      this.#persist.run(CLOCK_HIGH_WATER_MARK, String(at).padEnd(this.writeFailure ? PROBE_BYTES : 0)),
    );
    this.#lastAt = Math.max(this.#lastAt, at);
    this.#advancePhases(at);
  }

  /** `now` was persisted before, so that no row is ahead of the log's clock. */
  #advancePhases(now: Millis): void {
    const advanced = this.#access.write(() => this.#phases.advance(now, PHASES_PER_STEP));
    if (advanced < PHASES_PER_STEP || this.#nextStep !== undefined) return;
    this.#nextStep = setTimeout(() => {
      this.#nextStep = undefined;
      try {
        this.#advancePhases(now);
      } catch {
        // It is tried again with the next reading of the clock.
      }
    }, PHASE_STEP_PAUSE_MS).unref();
  }

  close(): void {
    clearTimeout(this.#nextStep);
  }
}

// Facts that are kept with the log, and its clock.
import type { Statement } from 'better-sqlite3';
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { LogMeta } from '../store.ts';
import type { Access } from './access.ts';
import { CLOCK_HIGH_WATER_MARK, readClock } from './clock.ts';
import type { Listings } from './listings.ts';

/** Chambers that are moved on to their phase at a time, and the pause before the next ones: a step takes about 1 ms. */
const PHASES_PER_STEP = 100;
const PHASE_STEP_PAUSE_MS = 20;

/** After a failed write the clock takes as much room as a large move: its success shows that moves fit again. */
const PROBE_BYTES = 65_536;

export class SqliteMeta implements LogMeta {
  readonly #access: Access;
  readonly #recall: Statement<[string], string>;
  readonly #remember: Statement<[string, string]>;
  readonly #persist: (at: Millis) => number;
  #lastAt: Millis;
  #phaseStep: NodeJS.Timeout | undefined;

  constructor(access: Access, listings: Listings) {
    const { db } = access.file;
    this.#access = access;
    this.#recall = db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck();
    this.#remember = db.prepare('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)');
    const persist = db.prepare<[string, string]>('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
    this.#persist = db.transaction((at: Millis) => {
      persist.run(CLOCK_HIGH_WATER_MARK, String(at).padEnd(this.writeFailure ? PROBE_BYTES : 0));
      return listings.advancePhases(at, PHASES_PER_STEP);
    }).immediate;
    this.#lastAt = readClock(db);
  }

  get lastAt(): Millis {
    return this.#lastAt;
  }

  get writeFailure(): ForumError | undefined {
    return this.#access.writeFailure;
  }

  read(name: string): string | undefined {
    return this.#recall.get(name);
  }

  recall(name: string): Promise<string | undefined> {
    return this.#access.read(() => this.read(name));
  }

  async remember(name: string, value: string): Promise<void> {
    await this.#access.read(() => this.#remember.run(name, value));
  }

  async persistClock(at: Millis): Promise<void> {
    const advanced = this.#access.write(() => this.#persist(at));
    this.#lastAt = Math.max(this.#lastAt, at);
    if (advanced < PHASES_PER_STEP || this.#phaseStep !== undefined) return;
    this.#phaseStep = setTimeout(() => {
      this.#phaseStep = undefined;
      // What fails now is tried again with the next reading of the clock.
      this.persistClock(at).catch(() => {});
    }, PHASE_STEP_PAUSE_MS).unref();
  }

  close(): void {
    clearTimeout(this.#phaseStep);
  }
}

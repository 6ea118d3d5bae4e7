// Tracks, across restarts, the chambers whose end this server must still report, because a chamber may end between two calls or while the
// server is not running. An end counts as reported once a call that the client did not cancel has returned the outcome.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { makeFolder, replaceFile } from '../files/durable-file.ts';
import { detach } from '../process/detach.ts';
import { timerMillis } from '../reading/waiting.ts';
import { RECEIVED_AFTER_MILLIS } from './acting-calls.ts';

/** The chambers in the agent's todo list. */
interface Listed {
  readonly ids: readonly number[];
  /** Chambers that agents can no longer change. */
  readonly closed: readonly number[];
  /** Whether the list is truncated and may lack open chambers. */
  readonly isCut: boolean;
}

/** If there are more, the oldest chambers are dropped. */
const CHAMBERS_MAX = 1_000;

const stored = v.strictObject({ chambers: v.pipe(v.array(v.number()), v.maxLength(CHAMBERS_MAX)) });

export class Endings {
  readonly #folder: string;
  readonly #report: (line: string) => void;
  /** Open chambers, and chambers whose end has not been reported. */
  readonly #open = new Set<number>();
  readonly #loaded: Promise<void>;
  /** Chambers whose end was reported. The todo list contains them until their root is on the chain. */
  readonly #reported = new Set<number>();
  /** The ends that the last waiting call was the first to report. Its result may have been lost. */
  #last: readonly number[] = [];
  #isWriteScheduled = false;
  #lastWrite = Promise.resolve();

  constructor(folder: string, report: (line: string) => void) {
    this.#folder = folder;
    this.#report = report;
    this.#loaded = this.#load();
  }

  /** Returns the chambers that are over and whose end has not been reported. */
  async unreported({ ids, closed, isCut }: Listed): Promise<readonly number[]> {
    await this.#loaded;
    const size = this.#open.size;
    for (const each of ids) if (!this.#reported.has(each)) this.#open.add(each);
    if (this.#open.size !== size) this.#save();
    return [...this.#open].filter((each) => (ids.includes(each) ? closed.includes(each) : !isCut));
  }

  /** If the call repeats the previous call, returns the ends that the previous call reported, so that they are reported once more. */
  toRepeat(isRepetition: boolean): readonly number[] {
    const last = this.#last;
    this.#last = [];
    return isRepetition ? last : [];
  }

  /** Records that a call reports these ends. If the client cancels the call, a later call reports them again. */
  markReported(chamberIds: readonly number[], signal: AbortSignal): void {
    this.#last = chamberIds.filter((each) => !this.#reported.has(each));
    if (chamberIds.length === 0 || signal.aborted) return;
    this.forget(chamberIds);
    const again = () => {
      for (const each of chamberIds) this.#open.add(each);
      for (const each of chamberIds) this.#reported.delete(each);
      this.#save();
    };
    signal.addEventListener('abort', again, { once: true });
    setTimeout(() => signal.removeEventListener('abort', again), timerMillis(RECEIVED_AFTER_MILLIS)).unref();
  }

  /** Stops tracking chambers whose end was reported, or that the agent did not join. */
  forget(chamberIds: readonly number[]): void {
    for (const each of chamberIds) {
      this.#open.delete(each);
      this.#reported.add(each);
    }
    this.#save();
  }

  /** If the file is missing, only ends before this start go unreported. */
  async #load(): Promise<void> {
    try {
      const { chambers } = v.parse(stored, JSON.parse(await readFile(this.#path, 'utf8')));
      for (const each of chambers) this.#open.add(each);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      this.#report(`${this.#path} cannot be read: ${(error as Error).message}`);
    }
  }

  /** Each write waits for the previous one, which could otherwise end later and undo it. */
  #save(): void {
    if (this.#isWriteScheduled) return;
    this.#isWriteScheduled = true;
    this.#lastWrite = this.#lastWrite.then(() => this.#write());
    detach(this.#lastWrite);
  }

  async #write(): Promise<void> {
    // Combines changes within one turn of the event loop into one write.
    await new Promise(setImmediate);
    this.#isWriteScheduled = false;
    try {
      await makeFolder(this.#folder, { mode: 0o700 });
      const chambers = [...this.#open].slice(-CHAMBERS_MAX);
      await replaceFile(this.#path, JSON.stringify({ chambers }), { mode: 0o600 });
    } catch (error) {
      this.#report(`${this.#path} cannot be written: ${(error as Error).message}`);
    }
  }

  get #path(): string {
    // The name does not end with .json, which marks call files.
    return join(this.#folder, 'open-chambers');
  }
}

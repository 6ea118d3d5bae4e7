// Tracks across restarts which chambers' ends this server must still report, because a chamber may end between two calls or while the
// server is not running. An end counts as reported once its outcome was returned to a call that the client did not cancel.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { makeFolder, replaceFile } from '../files/durable-file.ts';
import { detach } from '../process/detach.ts';
import { timerMillis } from '../reading/waiting.ts';

/** The chambers in the agent's todo list. */
interface Listed {
  readonly ids: readonly number[];
  /** Chambers that agents can no longer change. */
  readonly closed: readonly number[];
  /** Whether the list is truncated and may lack open chambers. */
  readonly isCut: boolean;
}

/** The oldest chambers are dropped first. */
const CHAMBERS_MAX = 1_000;
/** If a result was returned this long ago and the call was not cancelled, it counts as received. */
const RECEIVED_AFTER_MILLIS = 1_000;

const stored = v.strictObject({ chambers: v.pipe(v.array(v.number()), v.maxLength(CHAMBERS_MAX)) });

export class Endings {
  readonly #folder: string;
  readonly #report: (line: string) => void;
  /** Open chambers, and chambers whose end has not been reported. */
  readonly #open = new Set<number>();
  readonly #loaded: Promise<void>;
  /** Reported chambers. The todo list contains them until their root is on the chain. */
  readonly #reported = new Set<number>();
  /** The ends first reported by the last waiting call, whose result may have been lost. */
  #last: readonly number[] = [];
  #isSaving = false;

  constructor(folder: string, report: (line: string) => void) {
    this.#folder = folder;
    this.#report = report;
    this.#loaded = this.#load();
  }

  /** Returns the chambers that are over and not reported. */
  async of({ ids, closed, isCut }: Listed): Promise<readonly number[]> {
    await this.#loaded;
    const size = this.#open.size;
    for (const each of ids) if (!this.#reported.has(each)) this.#open.add(each);
    if (this.#open.size !== size) this.#save();
    return [...this.#open].filter((each) => (ids.includes(each) ? closed.includes(each) : !isCut));
  }

  /** If the call repeats the previous one, returns the ends which that call reported, so that they are reported once more. */
  lost(isRepetition: boolean): readonly number[] {
    const last = this.#last;
    this.#last = [];
    return isRepetition ? last : [];
  }

  /** Records that a call reports these ends. If it is cancelled, they are reported again. */
  returned(chamberIds: readonly number[], signal: AbortSignal): void {
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

  /** Stops tracking chambers that were reported, or do not belong to the agent. */
  forget(chamberIds: readonly number[]): void {
    for (const each of chamberIds) {
      this.#open.delete(each);
      this.#reported.add(each);
    }
    this.#save();
  }

  /** If the file is missing, only ends before this start are missed. */
  async #load(): Promise<void> {
    try {
      const { chambers } = v.parse(stored, JSON.parse(await readFile(this.#path, 'utf8')));
      for (const each of chambers) this.#open.add(each);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      this.#report(`${this.#path} can't be read: ${(error as Error).message}`);
    }
  }

  #save(): void {
    if (this.#isSaving) return;
    this.#isSaving = true;
    detach(
      (async () => {
        // Combines changes within one turn of the event loop into one write.
        await new Promise(setImmediate);
        this.#isSaving = false;
        try {
          await makeFolder(this.#folder, { mode: 0o700 });
          const chambers = [...this.#open].slice(-CHAMBERS_MAX);
          await replaceFile(this.#path, JSON.stringify({ chambers }), { mode: 0o600 });
        } catch (error) {
          this.#report(`${this.#path} can't be written: ${(error as Error).message}`);
        }
      })(),
    );
  }

  get #path(): string {
    // The files with calls of chambers end with .json.
    return join(this.#folder, 'open-chambers');
  }
}

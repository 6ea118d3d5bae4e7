// Notifies streams with notes of each withheld event, as soon as this process learns of the withholding.
import { setTimeout as pause } from 'node:timers/promises';
import type { Withholding } from '../log/withholding.ts';
import { detach } from '../process/detach.ts';
import { fromLine } from '../vocabulary/events.ts';

const STUBS_PER_READ = 1_000;
const RETRY_MS = 1_000;

type OnEvent = (eventId: number) => void;

export class WithheldNotes {
  readonly #withholding: Pick<Withholding, 'through' | 'onWithheld' | 'read'>;
  /** By chamber. */
  readonly #readers = new Map<number, Set<OnEvent>>();
  /** The last withholding that readers were notified of. */
  #notified: number;
  #isReading = false;

  constructor(withholding: Pick<Withholding, 'through' | 'onWithheld' | 'read'>) {
    this.#withholding = withholding;
    this.#notified = withholding.through;
    withholding.onWithheld(() => {
      if (this.#readers.size === 0) this.#notified = withholding.through;
      else if (!this.#isReading) detach(this.#notify());
    });
  }

  /** Calls `onEvent` for each event of the chamber that is withheld from now on, until the returned function is called. */
  follow(chamberId: number, onEvent: OnEvent): () => void {
    const readers = this.#readers.get(chamberId) ?? new Set();
    this.#readers.set(chamberId, readers.add(onEvent));
    return () => {
      readers.delete(onEvent);
      if (readers.size === 0 && this.#readers.get(chamberId) === readers) this.#readers.delete(chamberId);
    };
  }

  async #notify(): Promise<void> {
    this.#isReading = true;
    while (this.#notified < this.#withholding.through && this.#readers.size > 0) {
      const page = await this.#withholding.read(this.#notified, STUBS_PER_READ).catch(() => undefined);
      if (page === undefined || page.count === 0) {
        await pause(RETRY_MS, undefined, { ref: false });
        continue;
      }
      this.#notified = page.last;
      for (const line of page.ndjson.toString().trimEnd().split('\n')) {
        const { chamberId, eventId } = fromLine(line);
        for (const onEvent of this.#readers.get(chamberId ?? 0) ?? []) onEvent(eventId);
      }
    }
    if (this.#readers.size === 0) this.#notified = this.#withholding.through;
    this.#isReading = false;
  }
}

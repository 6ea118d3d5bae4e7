// Tells streams with notes which events are withheld, as soon as this process knows.
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
  /** The last withholding of which readers were told. */
  #told: number;
  #isReading = false;

  constructor(withholding: Pick<Withholding, 'through' | 'onWithheld' | 'read'>) {
    this.#withholding = withholding;
    this.#told = withholding.through;
    withholding.onWithheld(() => {
      if (this.#readers.size === 0) this.#told = withholding.through;
      else if (!this.#isReading) detach(this.#tell());
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

  async #tell(): Promise<void> {
    this.#isReading = true;
    while (this.#told < this.#withholding.through && this.#readers.size > 0) {
      const page = await this.#withholding.read(this.#told, STUBS_PER_READ).catch(() => undefined);
      if (page === undefined || page.count === 0) {
        await pause(RETRY_MS, undefined, { ref: false });
        continue;
      }
      this.#told = page.last;
      for (const line of page.ndjson.toString().trimEnd().split('\n')) {
        const { chamberId, eventId } = fromLine(line);
        for (const onEvent of this.#readers.get(chamberId ?? 0) ?? []) onEvent(eventId);
      }
    }
    if (this.#readers.size === 0) this.#told = this.#withholding.through;
    this.#isReading = false;
  }
}

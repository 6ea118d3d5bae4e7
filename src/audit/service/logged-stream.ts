// Compares the lines of one stream with its entries in the log: each event that has an entry has to be served, with the line of that entry.
import { type IndexedLeaf, nameOfEvent, nameOfStream, type Stream } from '../../tlog/leaf-index.ts';
import type { LogEntries } from './log-entries.ts';

export interface Mismatch {
  readonly problem: string;
  /** The first entry without its line, and the line that is served for it. */
  readonly leaf: IndexedLeaf;
  readonly line: string | null;
}

export class LoggedStream {
  readonly #entries: LogEntries;
  readonly #stream: Stream;
  readonly #indexes: Int32Array;
  /** Events that were compared, 1 for each. */
  readonly #seen: Uint8Array;
  #mismatch: Mismatch | undefined;

  constructor(entries: LogEntries, stream: Stream) {
    this.#entries = entries;
    this.#stream = stream;
    this.#indexes = entries.indexesOf(stream);
    this.#seen = new Uint8Array(this.#indexes.length);
  }

  /** How many events of the stream the log has. */
  get size(): number {
    return this.#indexes.length;
  }

  /** The index of the event's entry; undefined for one after the checkpoint. */
  indexOf(eventId: number): number | undefined {
    return this.#indexes[eventId - 1];
  }

  take(eventId: number, leaf: Uint8Array, line: Uint8Array): void {
    const index = this.indexOf(eventId);
    if (index === undefined) return;
    this.#seen[eventId - 1] = 1;
    if (this.#mismatch !== undefined || Buffer.compare(leaf, this.#entries.entryAt(index)) === 0) return;
    const indexed = { stream: this.#stream, eventId, index };
    const problem = `the line of ${nameOfEvent(indexed)} is not the one that the log has at index ${index}`;
    this.#mismatch = { problem, leaf: indexed, line: new TextDecoder().decode(line) };
  }

  /** What is wrong once all lines were taken; events before `publishedFrom` need none. */
  mismatch(publishedFrom = 1): Mismatch | undefined {
    if (this.#mismatch !== undefined) return this.#mismatch;
    const missing = this.#seen.indexOf(0, publishedFrom - 1);
    if (missing < 0) return undefined;
    const leaf = { stream: this.#stream, eventId: missing + 1, index: this.#indexes[missing] as number };
    const problem = `no line explains the entry at index ${leaf.index} of the log, which is said to be event ${leaf.eventId} of ${nameOfStream(leaf.stream)}`;
    return { problem, leaf, line: null };
  }
}

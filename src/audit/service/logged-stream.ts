// Compares a stream's lines with its entries in the log: the service must serve a line with the same leaf for each entry, and each line
// must contain the hash of the previous line.
import { InvalidStub } from '../../crypto/stub.ts';
import { StubReader } from '../../crypto/stub-reader.ts';
import { READ_LIMITS } from '../../reading/limits.ts';
import {
  type IndexedLeaf,
  isAccountStream,
  nameOfEvent,
  nameOfStream,
  positionOfLine,
  type Stream,
} from '../../tlog/leaf-index.ts';
import { type Hex, instantOf, NO_PREVIOUS, toHex } from '../../vocabulary/values.ts';
import type { StreamHead } from '../account/watched-accounts.ts';
import { UnusableInput } from '../line/input.ts';
import { leafOf } from '../line/leaf.ts';
import { readAny } from '../line/record.ts';
import type { LogEntries } from './log-entries.ts';
import type { AuditedService } from './service-reader.ts';

const utf8 = new TextDecoder();

export interface Mismatch {
  readonly problem: string;
  /** The first entry without its line, and the line served instead. */
  readonly leaf: IndexedLeaf;
  readonly line: string | null;
}

export class LoggedStream {
  firstEventId: number | undefined;
  /** The earliest and the latest of the lines after the judged ones; a line without a valid time counts as the earliest. */
  readonly unjudged: Pick<StreamHead, 'eventId' | 'at'>[] = [];
  /** The index of the first line of a release that publishes every line. */
  laterFrom: number | undefined;
  readonly #entries: LogEntries;
  readonly #stream: Stream;
  readonly #indexes: Int32Array;
  /** 1 for each compared event. */
  readonly #seen: Uint8Array;
  readonly #served = new Map<number, Hex>();
  #firstPrev: unknown;
  #last = { eventId: 0, leaf: '' };
  #isServed = true;
  #mismatch: Mismatch | undefined;

  constructor(entries: LogEntries, stream: Stream) {
    this.#entries = entries;
    this.#stream = stream;
    this.#indexes = entries.indexesOf(stream);
    this.#seen = new Uint8Array(this.#indexes.length);
  }

  /** Reads further lines, up to the last entry or the last judged line. */
  async read(service: AuditedService, heads: readonly StreamHead[]): Promise<void> {
    const { eventId: after } = this.#last;
    const wanted = Math.max(this.#indexes.length, ...heads.map(({ eventId }) => eventId));
    if (after >= wanted) return;
    const lines =
      typeof this.#stream === 'string' ? service.accountLines(this.#stream, after) : service.lines(this.#stream, after);
    this.#isServed = true;
    try {
      for await (const { bytes } of lines) {
        if (!this.#take(bytes, heads) || this.#last.eventId >= wanted) return;
      }
    } catch (error) {
      if (!(error instanceof UnusableInput)) throw error;
      this.#isServed = false;
    }
  }

  /** Returns undefined for an event after the checkpoint. */
  indexOf(eventId: number): number | undefined {
    return this.#indexes[eventId - 1];
  }

  /** Whether the last lines are missing, which a lagging node may serve later. */
  isBehind(heads: readonly StreamHead[]): boolean {
    const last = Math.max(this.#last.eventId, this.unpublished);
    return last < this.#indexes.length || heads.some(({ eventId }) => eventId > last);
  }

  hasServed({ eventId, leaf }: StreamHead): boolean {
    return this.#served.get(eventId) === leaf;
  }

  /**
   * The number of initial events that a release before schema 4 may have left unpublished. The account must be served, and its first
   * published line must hold the hash of the last unpublished one.
   */
  get unpublished(): number {
    const { firstEventId = this.#indexes.length + 1 } = this;
    const index = this.indexOf(firstEventId - 1);
    if (!isAccountStream(this.#stream) || !this.#isServed || index === undefined) return 0;
    const isLinked = this.firstEventId === undefined || this.#firstPrev === toHex(this.#entries.entryAt(index));
    return isLinked ? firstEventId - 1 : 0;
  }

  /** Call after reading all lines. Returns the first problem; lines before `publishedFrom` may be missing. */
  mismatch(publishedFrom = 1): Mismatch | undefined {
    if (this.#mismatch !== undefined) return this.#mismatch;
    const missing = this.#seen.indexOf(0, publishedFrom - 1);
    if (missing < 0) return undefined;
    const leaf = { stream: this.#stream, eventId: missing + 1, index: this.#indexes[missing] as number };
    const problem = `no line matches the entry at index ${leaf.index} of the log, which the index calls event ${leaf.eventId} of ${nameOfStream(leaf.stream)}`;
    return { problem, leaf, line: null };
  }

  /** Takes the next line; returns false if it is not the stream's next event. */
  #take(bytes: Uint8Array, heads: readonly StreamHead[]): boolean {
    const position = positionOfLine(utf8.decode(bytes), READ_LIMITS.jsonValuesMax);
    const { eventId: before, leaf: prev } = this.#last;
    const isFirst = before === 0;
    if (position?.stream !== this.#stream) return false;
    if (!isFirst && (position.eventId !== before + 1 || position.prev !== prev)) return false;
    if (position.eventId === 1 && position.prev !== NO_PREVIOUS) return false;
    if (isFirst) {
      this.firstEventId = position.eventId;
      this.#firstPrev = position.prev;
    }
    const { eventId } = position;
    const leaf = leafOfServed(bytes);
    this.#last = { eventId, leaf: toHex(leaf) };
    if (heads.some((head) => head.eventId === eventId)) this.#served.set(eventId, toHex(leaf));
    if (heads.every((head) => head.eventId < eventId)) this.#noteUnjudged(eventId, position.ts);
    this.#compare(eventId, leaf, bytes);
    const index = this.indexOf(eventId);
    if (position.isFromLaterRelease && index !== undefined) this.laterFrom ??= index;
    return true;
  }

  #noteUnjudged(eventId: number, ts: unknown): void {
    const line = { eventId, at: typeof ts === 'string' ? instantOf(ts) : Number.NaN };
    if (Number.isNaN(line.at)) line.at = Number.NEGATIVE_INFINITY;
    const [earliest, latest] = this.unjudged;
    if (earliest === undefined || line.at < earliest.at) this.unjudged[0] = line;
    if (latest === undefined || line.at > latest.at) this.unjudged[1] = line;
  }

  #compare(eventId: number, leaf: Uint8Array, line: Uint8Array): void {
    const index = this.indexOf(eventId);
    if (index === undefined) return;
    this.#seen[eventId - 1] = 1;
    if (this.#mismatch !== undefined || Buffer.compare(leaf, this.#entries.entryAt(index)) === 0) return;
    const indexed = { stream: this.#stream, eventId, index };
    const problem = `the line of ${nameOfEvent(indexed)} is not the one that the log has at index ${index}`;
    this.#mismatch = { problem, leaf: indexed, line: utf8.decode(line) };
  }
}

const stubs = new StubReader(() => undefined);

/** The leaf of an unsigned stub is that of its own bytes, which no log contains. The check `withheld` judges the stub's key. */
function leafOfServed(line: Uint8Array): Uint8Array {
  const { event } = readAny({ bytes: line, isEnded: true });
  if (event?.withheld === undefined) return leafOf(line);
  try {
    return stubs.leafOf(line, event);
  } catch (error) {
    if (error instanceof InvalidStub) return leafOf(line);
    throw error;
  }
}

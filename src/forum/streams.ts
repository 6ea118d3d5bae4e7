// The streams in memory. A stream is folded when it is first needed, page by page, starting at its latest snapshot, and cached within a
// limit in bytes. Each line is checked against the hash of the previous line. The log is the source of truth: evicted states are folded
// again, and states that other processes have extended catch up.
import { LRUCache } from 'lru-cache';
import {
  ACCOUNT_SNAPSHOT_EVERY_EVENTS,
  decodeAccount,
  decodeState,
  isSnapshotDue,
  SNAPSHOT_EVERY_EVENTS,
} from '../../projections/snapshot.ts';
import { peakRefs, restoreTree } from '../crypto/merkle.ts';
import { storedLeaf } from '../crypto/stub.ts';
import { LogCorruption } from '../log/damage.ts';
import type { EventLog } from '../log/log.ts';
import { readPages } from '../log/pages.ts';
import type { Store } from '../log/store.ts';
import type { StreamId } from '../log/stream-id.ts';
import type { Withholding } from '../log/withholding.ts';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';
import { fromLine } from '../vocabulary/events.ts';
import { NO_PREVIOUS, toHex } from '../vocabulary/values.ts';
import {
  type Account,
  accountBytes,
  applyAccountEvent,
  applyChamberEvent,
  type Chamber,
  restoredBytes,
  type State,
  snapshotOf,
} from './staging.ts';

/** A larger fold holds a large state outside the cache, so only a few of them run at once. */
const LIGHT_FOLD_BYTES = 1_048_576;
const HEAVY_FOLDS_MAX = 4;

export class Streams {
  readonly #log: EventLog;
  readonly #withholding: Withholding;
  readonly #onCorruption: (error: LogCorruption) => void;
  readonly #cache: LRUCache<StreamId, State>;
  /** Streams that pending commands need. They stay in memory even if the cache evicts them. */
  readonly #pinned = new Map<StreamId, Pinned>();
  /** Streams whose state in memory is older than the head that was reported here. */
  readonly #behind = new Map<StreamId, number>();
  readonly #loading = new Map<StreamId, Load>();
  readonly #heavyFolds = new ConcurrencyLimit({ max: HEAVY_FOLDS_MAX });
  /** The number of times that a state in memory was extended with events of other processes. */
  catchUps = 0;

  /** `onCorruption` is called if the log no longer has events that were read from it: the process must exit. */
  constructor(
    { log, withholding }: Pick<Store, 'log' | 'withholding'>,
    bytesMax: number,
    onCorruption: (error: LogCorruption) => void = () => {},
  ) {
    this.#log = log;
    this.#withholding = withholding;
    this.#onCorruption = onCorruption;
    this.#cache = new LRUCache({ maxSize: bytesMax });
    withholding.onWithheld((streams) => this.#drop(streams ?? this.#known()));
  }

  #known(): Iterable<StreamId> {
    return [...this.#cache.keys(), ...this.#pinned.keys(), ...this.#loading.keys()];
  }

  /** Drops states that may contain a withheld text. A fold in progress returns no state and starts again. */
  #drop(streams: Iterable<StreamId>): void {
    for (const stream of streams) {
      this.#cache.delete(stream);
      const pinned = this.#pinned.get(stream);
      if (pinned !== undefined) Object.assign(pinned, { state: undefined, isLoaded: false });
      const load = this.#loading.get(stream);
      if (load !== undefined) load.isOutdated = true;
      this.#loading.delete(stream);
    }
  }

  /** The last withholding that the states in memory take into account. */
  get withheldThrough(): number {
    return this.#withholding.through;
  }

  /**
   * The state in memory; null for a pinned stream that had no events when it was loaded. Undefined if the stream must be loaded first: it
   * is not in memory, known to be behind its head, or damaged.
   */
  current(stream: StreamId): State | null | undefined {
    const { damagedStreams } = this.#log;
    if (damagedStreams.size > 0 && damagedStreams.get(stream) !== undefined) return undefined;
    const pinned = this.#pinned.get(stream);
    const state = pinned?.state ?? this.#cache.get(stream);
    if (state === undefined) return pinned?.isLoaded ? null : undefined;
    return this.#behind.has(stream) ? undefined : state;
  }

  /** Keeps the streams in memory, from their next load until the returned function is called (once). */
  pin(streams: readonly StreamId[]): () => void {
    for (const stream of streams) {
      const pinned = this.#pinned.get(stream) ?? { state: this.#cache.get(stream), isLoaded: false, pins: 0 };
      pinned.pins++;
      this.#pinned.set(stream, pinned);
    }
    return () => {
      for (const stream of streams) {
        const pinned = this.#pinned.get(stream);
        if (pinned !== undefined && --pinned.pins === 0) this.#pinned.delete(stream);
      }
    };
  }

  /**
   * Stores a state whose events are in the log, unless memory has a newer one: folds and appends end in any order. A state from before a
   * withholding may contain the withheld text and is not stored.
   */
  publish(stream: StreamId, state: State, withheldThrough: number): void {
    if (withheldThrough < this.withheldThrough) {
      this.noteHead(stream, state.state.lastEventId);
      return;
    }
    const pinned = this.#pinned.get(stream);
    const known = pinned?.state ?? this.#cache.get(stream);
    if (known !== undefined && known.state.lastEventId > state.state.lastEventId) return;
    this.#cache.set(stream, state, { size: state.bytes });
    if (pinned !== undefined) Object.assign(pinned, { state, isLoaded: true });
    const head = this.#behind.get(stream);
    if (head !== undefined && state.state.lastEventId >= head) this.#behind.delete(stream);
  }

  /** Another process has extended the stream to this head, so older states are no longer current. */
  noteHead(stream: StreamId, head: number): void {
    const pinned = this.#pinned.get(stream);
    const state = pinned?.state ?? this.#cache.get(stream);
    if (state === undefined) {
      if (pinned !== undefined) pinned.isLoaded = false;
    } else if (state.state.lastEventId < head) this.#behind.set(stream, head);
  }

  get bytes(): number {
    return this.#cache.calculatedSize;
  }

  /**
   * The state at `head` or later; by default at the log's current head. Undefined if the stream has no events. Throws StreamDamaged and
   * FORUM_ERR_UNAVAILABLE.
   */
  at(chamberId: number, head?: number): Promise<Chamber | undefined>;
  at(did: string, head?: number): Promise<Account | undefined>;
  at(stream: StreamId, head?: number): Promise<State | undefined>;
  async at(stream: StreamId, head?: number): Promise<State | undefined> {
    const damage = this.#log.damagedStreams.get(stream);
    if (damage !== undefined) throw damage;
    const known = head === undefined ? (this.current(stream)?.state.lastEventId ?? 0) : 0;
    const minHead = head ?? (await this.#log.lastEventId(stream));
    if (minHead < known) throw this.#corrupted(stream, minHead, known);
    let state = this.current(stream) ?? undefined;
    // A fold shared with another caller may end before that head.
    while ((state?.state.lastEventId ?? 0) < minHead) state = await this.#load(stream, minHead);
    const pinned = this.#pinned.get(stream);
    if (state === undefined && pinned !== undefined) pinned.isLoaded = true;
    return state;
  }

  async load(stream: StreamId): Promise<void> {
    if (this.current(stream) === undefined) await this.at(stream, this.#behind.get(stream));
  }

  /** Concurrent calls share one fold. */
  async #load(stream: StreamId, head: number): Promise<State | undefined> {
    const running = this.#loading.get(stream);
    if (running !== undefined) return running.state;
    let isHeavy = false;
    const beginHeavy = async () => {
      if (isHeavy) return;
      await this.#heavyFolds.acquire()?.turn;
      isHeavy = true;
    };
    const folding = this.#foldTo(stream, Math.max(head, this.#behind.get(stream) ?? 0), beginHeavy);
    const load: Load = { isOutdated: false, state: folding.then((state) => (load.isOutdated ? undefined : state)) };
    this.#loading.set(stream, load);
    try {
      const state = await load.state;
      if (state !== undefined) this.publish(stream, state, this.withheldThrough);
      return state;
    } finally {
      if (isHeavy) this.#heavyFolds.release();
      if (this.#loading.get(stream) === load) this.#loading.delete(stream);
    }
  }

  async #foldTo(stream: StreamId, head: number, beginHeavy: BeginHeavy): Promise<State | undefined> {
    const { withheldThrough } = this;
    const known = this.#pinned.get(stream)?.state ?? this.#cache.get(stream);
    if (known !== undefined) this.catchUps++;
    let state = known ?? (await this.#restore(stream, head, beginHeavy));
    let due: State | undefined;
    let bytes = 0;
    const range = { stream, after: state?.state.lastEventId ?? 0, until: head, lane: 'foreground' } as const;
    for await (const { ndjson } of readPages(this.#log, range)) {
      bytes += ndjson.length;
      if (bytes > LIGHT_FOLD_BYTES) await beginHeavy();
      for (let start = 0; start < ndjson.length; ) {
        const end = ndjson.indexOf(LINE_BREAK, start);
        state = this.#applyLine(stream, state, ndjson.subarray(start, end));
        if (isSnapshotDue(state.state)) due = state;
        start = end + 1;
      }
    }
    const { lastEventId = 0 } = state?.state ?? {};
    if (lastEventId < head) throw this.#corrupted(stream, lastEventId, head);
    // If this fails, a later fold writes a snapshot.
    if (due !== undefined) await this.#log.writeSnapshot(stream, snapshotOf(due), withheldThrough).catch(() => {});
    return state;
  }

  /** The state in the stream's snapshot, if the snapshot matches the log. */
  async #restore(stream: StreamId, head: number, beginHeavy: BeginHeavy): Promise<State | undefined> {
    const isChamber = typeof stream === 'number';
    if (head < (isChamber ? SNAPSHOT_EVERY_EVENTS : ACCOUNT_SNAPSHOT_EVERY_EVENTS)) return undefined;
    let snapshot = await this.#log.readSnapshot(stream);
    if (snapshot !== undefined && snapshot.state.length > LIGHT_FOLD_BYTES) {
      // Frees the memory of the snapshot while this fold waits.
      snapshot = undefined;
      await beginHeavy();
      snapshot = await this.#log.readSnapshot(stream);
    }
    if (snapshot === undefined) return undefined;
    const { eventId, leaf, state: text } = snapshot;
    const { ndjson } = await this.#log.readPage(stream, eventId - 1, 1);
    if (ndjson.length === 0 || !Buffer.from(leaf).equals(storedLeaf(ndjson.subarray(0, -1)))) {
      await this.#log.dropSnapshot(stream).catch(() => {});
      return undefined;
    }
    const headHash = toHex(leaf);
    if (!isChamber) {
      const state = decodeAccount(text);
      return { state, headHash, bytes: accountBytes(state) };
    }
    const state = decodeState(text);
    const peaks = await this.#log.readNodes(stream, peakRefs(state.moveCount));
    return { state, tree: restoreTree(state.moveCount, peaks), headHash, bytes: restoredBytes(text) };
  }

  /** The state after this line. Throws StreamDamaged if the line can't be the next one. */
  #applyLine(stream: StreamId, before: State | undefined, line: Buffer): State {
    const eventId = (before?.state.lastEventId ?? 0) + 1;
    try {
      const event = fromLine(line.toString());
      if (event.eventId !== eventId) throw new Error(`its eventId is ${event.eventId}`);
      if ((event.chamberId ?? event.did) !== stream) throw new Error('it belongs to another stream');
      if (event.prev !== (before?.headHash ?? NO_PREVIOUS))
        throw new Error('its prev is not the hash of the previous event');
      const leaf = storedLeaf(line);
      if (event.chamberId === null) return applyAccountEvent(before as Account | undefined, event, leaf);
      return applyChamberEvent(before as Chamber | undefined, event, { leaf, lineBytes: line.length }).chamber;
    } catch (error) {
      throw this.#log.damagedStreams.record(stream, eventId, `event ${eventId}: ${(error as Error).message}`);
    }
  }

  #corrupted(stream: StreamId, head: number, before: number): LogCorruption {
    const corruption = new LogCorruption(`stream ${stream} ends at event ${head}, but event ${before} was read before`);
    this.#onCorruption(corruption);
    return corruption;
  }
}

const LINE_BREAK = 0x0a;

/** Marks the fold as heavy; resolves when it may continue. A heavy fold may have to wait for others. */
type BeginHeavy = () => Promise<void>;

interface Load {
  /** Whether a line of the stream was withheld since the load began. */
  isOutdated: boolean;
  /** Undefined for a stream without events, and for an outdated load. */
  readonly state: Promise<State | undefined>;
}

interface Pinned {
  /** Undefined until the stream is loaded, or if it has no events. */
  state: State | undefined;
  isLoaded: boolean;
  pins: number;
}

// The streams in memory: each is folded from the log when first needed, a page at a time, and cached within a bound in bytes.
// A stream is folded from its latest snapshot on; every line of a fold is checked against the hash of the one before it.
// The log is the truth: a state that is evicted, or dropped after a failed batch, is folded again.
import { LRUCache } from 'lru-cache';
import {
  ACCOUNT_SNAPSHOT_EVERY_EVENTS,
  decodeAccount,
  decodeState,
  isSnapshotDue,
  SNAPSHOT_EVERY_EVENTS,
} from '../../projections/snapshot.ts';
import { leafHash, peakRefs, restoreTree } from '../crypto/merkle.ts';
import { type ForumLog, LogCorruption, StreamDamaged, type StreamId } from '../log/log.ts';
import { readPages } from '../log/pages.ts';
import { type ForumEvent, fromLine } from '../vocabulary/events.ts';
import { type Hex, NO_PREVIOUS, toHex } from '../vocabulary/values.ts';
import { NO_SLOT, type Slot, Slots } from './slots.ts';
import {
  type Account,
  accountBytes,
  type Chamber,
  grownAccount,
  grownChamber,
  type LineFacts,
  restoredBytes,
  snapshotOf,
} from './staging.ts';

/** What every fold may read at once. Folds of more, each of which holds a large state beside the cache, take a slot. */
const LIGHT_FOLD_BYTES = 1_048_576;
const HEAVY_FOLDS_MAX = 4;

interface LoadOptions {
  readonly isUrgent?: boolean;
  /** Where the fold may end, as the log has just said; else the log is asked. */
  readonly head?: number | undefined;
}

export class Streams {
  readonly #log: ForumLog;
  readonly #cache: LRUCache<StreamId, Chamber | Account>;
  /** The states of those that are held, whether the cache keeps them or not. */
  readonly #held = new Map<StreamId, Held>();
  readonly #loading = new Map<StreamId, Promise<Chamber | Account | undefined>>();
  readonly #heavyFolds = new Slots(HEAVY_FOLDS_MAX);
  #catchUps = 0;

  constructor(log: ForumLog, bytesMax: number) {
    this.#log = log;
    this.#cache = new LRUCache({ maxSize: bytesMax, sizeCalculation: ({ bytes }) => bytes });
  }

  /** The state in memory, if it is there and no damage of the stream is known. */
  cached(chamberId: number): Chamber | undefined;
  cached(did: string): Account | undefined;
  cached(stream: StreamId): Chamber | Account | undefined;
  cached(stream: StreamId): Chamber | Account | undefined {
    return this.#log.damageOf(stream) === undefined ? this.#inMemory(stream) : undefined;
  }

  #inMemory(stream: StreamId): Chamber | Account | undefined {
    return this.#held.get(stream)?.state ?? this.#cache.get(stream);
  }

  /** From their next load on, the streams stay in memory until the returned function is called, once. */
  hold(streams: readonly StreamId[]): () => void {
    for (const stream of streams) {
      const held = this.#held.get(stream) ?? { state: this.#cache.get(stream), holders: 0 };
      held.holders++;
      this.#held.set(stream, held);
    }
    return () => {
      for (const stream of streams) {
        const held = this.#held.get(stream);
        if (held !== undefined && --held.holders === 0) this.#held.delete(stream);
      }
    };
  }

  #keep(stream: StreamId, state: Chamber | Account): void {
    this.#cache.set(stream, state);
    const held = this.#held.get(stream);
    if (held !== undefined) held.state = state;
  }

  /** The stream at a head that it had after the call; undefined for a stream without events. */
  at(chamberId: number): Promise<Chamber | undefined>;
  at(did: string): Promise<Account | undefined>;
  at(stream: StreamId): Promise<Chamber | Account | undefined>;
  async at(stream: StreamId): Promise<Chamber | Account | undefined> {
    const head = this.#log.isShared ? await this.#log.lastEventId(stream) : undefined;
    for (;;) {
      const cached = this.cached(stream);
      if (head === undefined ? cached !== undefined : (cached?.state.lastEventId ?? 0) >= head) return cached;
      const state = await this.load(stream, { head });
      // It may be that of a fold under way, which ends before that head.
      if ((state?.state.lastEventId ?? 0) >= (head ?? 0)) return state;
    }
  }

  /** Makes a state whose events are in the log the current one. A fold that was under way is older, and not cached. */
  publish(stream: StreamId, state: Chamber | Account): void {
    this.#loading.delete(stream);
    this.#keep(stream, state);
  }

  forget(stream: StreamId): void {
    this.#loading.delete(stream);
    this.#cache.delete(stream);
    const held = this.#held.get(stream);
    if (held !== undefined) held.state = undefined;
  }

  /** Folds of what other processes appended to a state in memory. */
  get catchUps(): number {
    return this.#catchUps;
  }

  get bytes(): number {
    return this.#cache.calculatedSize;
  }

  /**
   * Folds the stream and caches it; undefined for a stream without events. Concurrent calls share one fold, except an urgent
   * one, for which everybody's moves wait: it does not join a fold that may wait for a slot, and takes none.
   */
  load(chamberId: number): Promise<Chamber | undefined>;
  load(did: string): Promise<Account | undefined>;
  load(stream: StreamId, options?: LoadOptions): Promise<Chamber | Account | undefined>;
  async load(stream: StreamId, { isUrgent = false, head }: LoadOptions = {}): Promise<Chamber | Account | undefined> {
    const damage = this.#log.damageOf(stream);
    if (damage !== undefined) throw damage;
    const running = this.#loading.get(stream);
    if (running !== undefined && !isUrgent) return running;
    if (this.#inMemory(stream) !== undefined) this.#catchUps++;
    const slot = isUrgent ? NO_SLOT : this.#heavyFolds.open();
    const loading = this.#load(stream, { slot, head });
    this.#loading.set(stream, loading);
    try {
      const state = await loading;
      // Not when a commit has published a newer state meanwhile.
      if (state !== undefined && this.#loading.get(stream) === loading) this.#keep(stream, state);
      return state;
    } finally {
      slot.release();
      if (this.#loading.get(stream) === loading) this.#loading.delete(stream);
    }
  }

  async #load(stream: StreamId, limits: FoldLimits): Promise<Chamber | Account | undefined> {
    let state = this.#inMemory(stream) ?? (await this.#restore(stream, limits));
    let due: Chamber | Account | undefined;
    await this.#fold({ stream, from: state, ...limits }, (event, leaf, lineBytes) => {
      state = grown(state, event, { leaf, lineBytes });
      if (isSnapshotDue(state.state)) due = state;
      return state.headHash;
    });
    // One that can't be written now is written after another fold.
    if (due !== undefined) await this.#log.writeSnapshot(stream, snapshotOf(due)).catch(() => {});
    return state;
  }

  /** The state after the stream's snapshot, if that belongs to the log. */
  async #restore(stream: StreamId, { slot, head }: FoldLimits): Promise<Chamber | Account | undefined> {
    const isChamber = typeof stream === 'number';
    if (head !== undefined && head < (isChamber ? SNAPSHOT_EVERY_EVENTS : ACCOUNT_SNAPSHOT_EVERY_EVENTS))
      return undefined;
    let snapshot = await this.#log.readSnapshot(stream);
    if (snapshot !== undefined && snapshot.state.length > LIGHT_FOLD_BYTES) {
      // Not held while it waits.
      snapshot = undefined;
      await slot.take();
      snapshot = await this.#log.readSnapshot(stream);
    }
    if (snapshot === undefined) return undefined;
    const { eventId, leaf, state: text } = snapshot;
    const { ndjson } = await this.#log.readPage(stream, eventId - 1, 1);
    if (ndjson.length === 0 || !Buffer.from(leaf).equals(leafHash(ndjson.subarray(0, -1)))) {
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

  /** Calls `evolve` with every event up to `head`, or without it up to the log's, also with those appended meanwhile; it returns the new hash. */
  async #fold(
    { stream, from, slot, head: known }: FoldOptions,
    evolve: (event: ForumEvent, leaf: Uint8Array, lineBytes: number) => Hex,
  ): Promise<void> {
    let after = from?.state.lastEventId ?? 0;
    let head = from?.headHash ?? NO_PREVIOUS;
    let bytes = 0;
    for (let until = known; ; until = undefined) {
      // A head that was read before may be behind a snapshot, or a state that was published meanwhile.
      if (until === undefined || until < after) until = await this.#log.lastEventId(stream);
      if (until < after) {
        this.forget(stream);
        throw new LogCorruption(`stream ${stream} ends at event ${until} and had ${after} before`);
      }
      if (until === after) return;
      for await (const { ndjson } of readPages(this.#log, { stream, after, until, lane: 'foreground' })) {
        bytes += ndjson.length;
        if (bytes > LIGHT_FOLD_BYTES) await slot.take();
        for (let start = 0; start < ndjson.length; ) {
          const end = ndjson.indexOf(LINE_BREAK, start);
          const line = ndjson.subarray(start, end);
          start = end + 1;
          try {
            const event = fromLine(line.toString());
            requireNext(event, { stream, eventId: ++after, prev: head });
            head = evolve(event, leafHash(line), line.length);
          } catch (error) {
            throw this.#log.noteDamage(new StreamDamaged(stream, after, `event ${after}: ${(error as Error).message}`));
          }
        }
      }
      if (known !== undefined && after >= known) return;
    }
  }
}

const LINE_BREAK = 0x0a;

interface Held {
  /** Undefined until it is loaded, and for a stream without events. */
  state: Chamber | Account | undefined;
  holders: number;
}

function grown(before: Chamber | Account | undefined, event: ForumEvent, facts: LineFacts): Chamber | Account {
  if (event.chamberId === null) return grownAccount(before as Account | undefined, event, facts.leaf);
  return grownChamber(before as Chamber | undefined, event, facts).chamber;
}

interface FoldLimits {
  readonly slot: Slot;
  readonly head: number | undefined;
}

interface FoldOptions extends FoldLimits {
  readonly stream: StreamId;
  readonly from: Chamber | Account | undefined;
}

interface Expected {
  readonly stream: StreamId;
  readonly eventId: number;
  readonly prev: Hex;
}

function requireNext(event: ForumEvent, { stream, eventId, prev }: Expected): void {
  if (event.eventId !== eventId) throw new Error(`its eventId is ${event.eventId}`);
  if ((event.chamberId ?? event.did) !== stream) throw new Error('it is of another stream');
  if (event.prev !== prev) throw new Error('its prev is not the hash of the event before it');
}

// The streams in memory: each is folded from the log when first needed, a page at a time, and cached within a bound in bytes.
// The log is the truth: a state that is evicted, or dropped after a failed batch, is folded again.
import { LRUCache } from 'lru-cache';
import { type AccountState, evolveAccount } from '../../projections/account.ts';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { type Accumulator, EMPTY_TREE, leafHash, peakRefs, restoreTree } from '../crypto/merkle.ts';
import type { ForumLog, StreamId } from '../log/log.ts';
import { readPages } from '../log/pages.ts';
import { type AccountEvent, type ChamberEvent, fromLine } from '../vocabulary/events.ts';
import { type Hex, toHex } from '../vocabulary/values.ts';

/** A chamber as its log has it: immutable, replaced as a whole by each event. */
export interface Chamber {
  readonly state: ChamberState;
  /** Over the moves: events 1 to state.moveCount. */
  readonly tree: Accumulator;
  /** Leaf hash of the last event: `prev` of the next. */
  readonly headHash: Hex;
  /** An estimate of what the state takes in memory. */
  readonly bytes: number;
}

export interface Account {
  readonly state: AccountState;
  readonly headHash: Hex;
  readonly bytes: number;
}

/** Of a stream without texts: objects, maps and the entry in the cache. */
export const STATE_BYTES_MIN = 2_048;
/** A line in memory: strings of two bytes a character at worst, and the objects that hold them. */
const MEMORY_BYTES_PER_LINE_BYTE = 2;

/** The estimate after one more event. Debate and turns leave nothing in a chamber's state. */
export function grownBytes(
  before: number | undefined,
  { type }: ChamberEvent | AccountEvent,
  lineBytes: number,
): number {
  if (type === 'chamber.debated' || type === 'chamber.passed') return before ?? STATE_BYTES_MIN;
  return (before ?? STATE_BYTES_MIN) + MEMORY_BYTES_PER_LINE_BYTE * lineBytes;
}

export class Streams {
  readonly #log: ForumLog;
  readonly #cache: LRUCache<StreamId, Chamber | Account>;
  readonly #loading = new Map<StreamId, Promise<Chamber | Account | undefined>>();

  constructor(log: ForumLog, bytesMax: number) {
    this.#log = log;
    this.#cache = new LRUCache({ maxSize: bytesMax, sizeCalculation: ({ bytes }) => bytes });
  }

  /** The state in memory, if it is there. */
  cached(chamberId: number): Chamber | undefined;
  cached(did: string): Account | undefined;
  cached(stream: StreamId): Chamber | Account | undefined;
  cached(stream: StreamId): Chamber | Account | undefined {
    return this.#cache.get(stream);
  }

  /** Makes a state whose events are in the log the current one. A fold that was under way is older, and not cached. */
  publish(stream: StreamId, state: Chamber | Account): void {
    this.#loading.delete(stream);
    this.#cache.set(stream, state);
  }

  forget(stream: StreamId): void {
    this.#loading.delete(stream);
    this.#cache.delete(stream);
  }

  get bytes(): number {
    return this.#cache.calculatedSize;
  }

  /** Folds the stream and caches it; undefined for a stream without events. Concurrent calls share one fold. */
  load(chamberId: number): Promise<Chamber | undefined>;
  load(did: string): Promise<Account | undefined>;
  load(stream: StreamId): Promise<Chamber | Account | undefined>;
  async load(stream: StreamId): Promise<Chamber | Account | undefined> {
    const running = this.#loading.get(stream);
    if (running !== undefined) return running;
    const loading = typeof stream === 'number' ? this.#loadChamber(stream) : this.#loadAccount(stream);
    this.#loading.set(stream, loading);
    try {
      const state = await loading;
      // Not when a commit has published a newer state meanwhile.
      if (state !== undefined && this.#loading.get(stream) === loading) this.#cache.set(stream, state);
      return state;
    } finally {
      if (this.#loading.get(stream) === loading) this.#loading.delete(stream);
    }
  }

  async #loadChamber(chamberId: number): Promise<Chamber | undefined> {
    let state: ChamberState | null = null;
    let bytes: number | undefined;
    const lastLine = await this.#fold(chamberId, (line) => {
      const event = fromLine(line) as ChamberEvent;
      state = evolveChamber(state, event);
      bytes = grownBytes(bytes, event, line.length);
    });
    if (lastLine === undefined || state === null || bytes === undefined) return undefined;
    const { moveCount } = state as ChamberState;
    const tree =
      moveCount === 0 ? EMPTY_TREE : restoreTree(moveCount, await this.#log.readNodes(chamberId, peakRefs(moveCount)));
    return { state, tree, headHash: hashLine(lastLine), bytes };
  }

  async #loadAccount(did: string): Promise<Account | undefined> {
    let state: AccountState | null = null;
    let bytes: number | undefined;
    const lastLine = await this.#fold(did, (line) => {
      const event = fromLine(line) as AccountEvent;
      state = evolveAccount(state, event);
      bytes = grownBytes(bytes, event, line.length);
    });
    if (lastLine === undefined || state === null || bytes === undefined) return undefined;
    return { state, headHash: hashLine(lastLine), bytes };
  }

  /** Calls `evolve` with every line up to the head and returns the last; events appended during the fold are folded too. */
  async #fold(stream: StreamId, evolve: (line: string) => void): Promise<string | undefined> {
    let last: string | undefined;
    let after = 0;
    for (let until = await this.#log.lastEventId(stream); after < until; until = await this.#log.lastEventId(stream)) {
      for await (const { ndjson } of readPages(this.#log, { stream, after, until, lane: 'foreground' })) {
        for (const line of ndjson.toString().trimEnd().split('\n')) {
          evolve(line);
          last = line;
        }
      }
      after = until;
    }
    return last;
  }
}

function hashLine(line: string): Hex {
  return toHex(leafHash(Buffer.from(line)));
}

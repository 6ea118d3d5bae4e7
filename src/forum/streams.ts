// The streams in memory: each is folded from the log when first needed, a page at a time, and kept in a bounded cache.
import { type AccountState, evolveAccount } from '../../projections/account.ts';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { type Accumulator, EMPTY_TREE, leafHash, peakRefs, restoreTree } from '../crypto/merkle.ts';
import type { ForumLog, StreamId } from '../log/log.ts';
import { readPages } from '../log/pages.ts';
import { type AccountEvent, type ChamberEvent, fromLine } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import type { Hex } from '../vocabulary/values.ts';
import { BoundedCache } from './cache.ts';

/** A chamber as its log has it: immutable, replaced as a whole by each event. */
export interface Chamber {
  readonly state: ChamberState;
  /** Over the moves: events 1 to state.moveCount. */
  readonly tree: Accumulator;
  /** Leaf hash of the last event: `prev` of the next. */
  readonly headHash: Hex;
}

export interface Account {
  readonly state: AccountState;
  readonly headHash: Hex;
  readonly operatorEmail: string | undefined;
}

export interface CacheLimits {
  readonly chambersCachedMax: number;
  readonly accountsCachedMax: number;
}

export class Streams {
  readonly #log: ForumLog;
  readonly #chambers: BoundedCache<number, Chamber>;
  readonly #accounts: BoundedCache<string, Account>;
  readonly #loading = new Map<StreamId, Promise<Chamber | Account | undefined>>();

  constructor(log: ForumLog, limits: CacheLimits) {
    this.#log = log;
    this.#chambers = new BoundedCache(limits.chambersCachedMax);
    this.#accounts = new BoundedCache(limits.accountsCachedMax);
  }

  chamber(chamberId: number): Chamber | undefined {
    return this.#chambers.get(chamberId);
  }

  account(did: string): Account | undefined {
    return this.#accounts.get(did);
  }

  get(stream: StreamId): Chamber | Account | undefined {
    return typeof stream === 'number' ? this.chamber(stream) : this.account(stream);
  }

  setChamber(chamber: Chamber): void {
    this.#chambers.set(chamber.state.chamberId, chamber);
  }

  setAccount(account: Account): void {
    this.#accounts.set(account.state.did, account);
  }

  forget(stream: StreamId): void {
    if (typeof stream === 'number') this.#chambers.delete(stream);
    else this.#accounts.delete(stream);
  }

  /**
   * Folds the stream into the cache, and gives its state: the cache may have forgotten it when the caller comes to look.
   * undefined for a stream without events. Concurrent calls share one fold.
   */
  load(chamberId: number): Promise<Chamber | undefined>;
  load(did: string): Promise<Account | undefined>;
  load(stream: StreamId): Promise<Chamber | Account | undefined>;
  load(stream: StreamId): Promise<Chamber | Account | undefined> {
    const running = this.#loading.get(stream);
    if (running !== undefined) return running;
    const load = typeof stream === 'number' ? this.#loadChamber(stream) : this.#loadAccount(stream);
    const settled = load.finally(() => this.#loading.delete(stream));
    this.#loading.set(stream, settled);
    return settled;
  }

  async #loadChamber(chamberId: number): Promise<Chamber | undefined> {
    let state: ChamberState | null = null;
    const lastLine = await this.#fold(chamberId, (line) => {
      state = evolveChamber(state, fromLine(line) as ChamberEvent);
    });
    if (lastLine === undefined || state === null) return undefined;
    const { moveCount } = state as ChamberState;
    const peaks = await this.#log.readNodes(chamberId, peakRefs(moveCount));
    // Whoever put it there meanwhile knows at least as much.
    const newer = this.#chambers.get(chamberId);
    if (newer !== undefined) return newer;
    const tree = moveCount === 0 ? EMPTY_TREE : restoreTree(moveCount, peaks);
    const chamber: Chamber = { state, tree, headHash: hashLine(lastLine) };
    this.setChamber(chamber);
    return chamber;
  }

  async #loadAccount(did: string): Promise<Account | undefined> {
    let state: AccountState | null = null;
    const lastLine = await this.#fold(did, (line) => {
      state = evolveAccount(state, fromLine(line) as AccountEvent);
    });
    const operatorEmail = await this.#log.operatorEmail(did);
    const newer = this.#accounts.get(did);
    if (lastLine === undefined || state === null || newer !== undefined) return newer;
    const account: Account = { state, headHash: hashLine(lastLine), operatorEmail };
    this.setAccount(account);
    return account;
  }

  async #fold(stream: StreamId, evolve: (line: string) => void): Promise<string | undefined> {
    let last: string | undefined;
    let after = 0;
    // What is appended during the fold is folded too: a state must never enter the cache behind its log.
    for (let until = await this.#log.lastEventId(stream); after < until; until = await this.#log.lastEventId(stream)) {
      for await (const { ndjson } of readPages(this.#log, { stream, after, until })) {
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

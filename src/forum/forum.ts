// The forum: the pipeline decides commands, reads use the states that it publishes, and followers are woken when the log grows.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { chamberItemView } from '../../projections/listings.ts';
import type { ListedChamber } from '../../projections/views.ts';
import { rootOf } from '../crypto/merkle.ts';
import type { Store } from '../log/store.ts';
import type { StreamId } from '../log/stream-id.ts';
import type { ChainReader } from '../moves/chain-question.ts';
import type { SignatureAges } from '../moves/rules.ts';
import type { ForumError } from '../vocabulary/errors.ts';
import { parseId } from '../vocabulary/parameters.ts';
import { type Millis, type Phase, toHex } from '../vocabulary/values.ts';
import { type Command, chamberNotFound, type EventOf } from './commands.ts';
import { Pipeline, type PipelineOptions } from './pipeline.ts';
import { type ClockProblem, ServiceClock, type TimeSource } from './service-clock.ts';
import type { Account, Chamber } from './staging.ts';
import { Streams } from './streams.ts';
import { TodoLists } from './todo-lists.ts';

const MEMBERSHIPS_PER_PAGE = 200;

export interface ForumOptions extends Omit<PipelineOptions, 'streams' | 'clock' | 'onGrown'> {
  readonly stateCacheBytesMax: number;
  /** Injected by tests. */
  readonly clock: TimeSource;
  /** How long a clock must agree with its new time after a jump before it is trusted. */
  readonly clockJumpMillis: Millis;
  readonly onClockProblem?: (problem: ClockProblem | undefined) => void;
}

export type { Chamber };

interface ChamberQuery {
  readonly member?: string | undefined;
  readonly phase: Phase | undefined;
  readonly before: number | undefined;
  readonly limit: number;
}

export class Forum {
  readonly store: Store;
  readonly todoLists: TodoLists;
  readonly #options: ForumOptions;
  readonly #streams: Streams;
  readonly #pipeline: Pipeline;
  readonly #followers = new Map<StreamId, Set<() => void>>();
  readonly #clock: ServiceClock;

  constructor(options: ForumOptions) {
    const { store } = options;
    this.#options = options;
    this.store = store;
    this.todoLists = new TodoLists(store.lists, options.limits, this);
    this.#clock = new ServiceClock({
      source: options.clock,
      lastAt: store.meta.lastAt,
      jumpMillis: options.clockJumpMillis,
      onProblem: options.onClockProblem,
    });
    this.#streams = new Streams(store, options.stateCacheBytesMax, options.onFatal);
    this.#pipeline = new Pipeline({
      ...options,
      streams: this.#streams,
      clock: this.#clock,
      onGrown: this.#wake,
    });
    store.nodes?.onGrowth({ followed: () => this.#followers.keys(), wake: (stream) => this.#wake([stream]) });
  }

  readonly #wake = (streams: Iterable<StreamId>): void => {
    for (const stream of streams) for (const wake of this.#followers.get(stream) ?? []) wake();
  };

  /**
   * Resolves with the event once it is on disk; rejects with ForumError. If the signature is already in the log, resolves with its first
   * event.
   */
  submit<C extends Command>(command: C): Promise<EventOf<C>> {
    return this.#pipeline.submit(command) as Promise<EventOf<C>>;
  }

  /** Sets the chain that decisions read. Without a chain, chambers can't have rules that need one. */
  useChain(reader: ChainReader): void {
    this.#pipeline.useChain(reader);
  }

  /** Rejects new commands while `halted` returns an error. */
  haltIf(halted: () => ForumError | undefined): void {
    this.#pipeline.halted = halted;
  }

  get haltedBy(): ForumError | undefined {
    return this.#pipeline.halted();
  }

  get writeFailure(): ForumError | undefined {
    return this.haltedBy ?? this.store.meta.writeFailure;
  }

  /** Rejects new commands with FORUM_ERR_UNAVAILABLE; resolves when all accepted commands are on disk and have their responses. */
  close(): Promise<void> {
    return this.#pipeline.close();
  }

  /** The service's time, which never decreases. */
  readonly now = (): Millis => this.#clock.now();

  /** The reason why the time is in doubt and nothing can be decided; undefined if the time is certain. */
  clockProblem(): ClockProblem | undefined {
    return this.#clock.problem();
  }

  /** Stores the time, so that no phase reopens if the clock is set back during a restart. */
  persistClock(): Promise<void> {
    return this.store.meta.persistClock(this.now());
  }

  get ages(): SignatureAges {
    return this.#options.ages;
  }

  get catchUps(): number {
    return this.#streams.catchUps;
  }

  get cachedBytes(): number {
    return this.#streams.bytes;
  }

  /** The chamber at its head; undefined if it does not exist. */
  chamber(chamberId: number): Promise<Chamber | undefined> {
    return this.#streams.at(chamberId);
  }

  /** A state that may be behind the head; undefined if the chamber is not in memory. */
  chamberInMemory(chamberId: number): Chamber | undefined {
    return (this.#streams.current(chamberId) as Chamber | null | undefined) ?? undefined;
  }

  /** Finds the chamber with an id from a path; throws FORUM_ERR_NOT_FOUND. */
  async findChamber(id: string | undefined): Promise<Chamber> {
    const chamberId = parseId(id);
    const chamber = chamberId === undefined ? undefined : await this.chamber(chamberId);
    if (chamber === undefined) throw chamberNotFound();
    return chamber;
  }

  /** The account at its head; undefined if the key is not registered. */
  account(did: string): Promise<Account | undefined> {
    return this.#streams.at(did);
  }

  /** The account, possibly behind its head. That suffices, because a registered key stays registered. */
  async signer(did: string): Promise<Account | undefined> {
    return (this.#streams.current(did) as Account | undefined) ?? this.#streams.at(did);
  }

  /** Newest chambers first; with `member`, only chambers that the agent has joined. */
  async chambers({ member, ...query }: ChamberQuery): Promise<readonly ListedChamber[]> {
    const now = this.now();
    if (member !== undefined) return this.#chambersOf(member, query, now);
    const listings = await this.store.lists.listChambers({ ...query, now });
    return listings.map((listing) => chamberItemView(listing, now));
  }

  async #chambersOf(member: string, { phase, before, limit }: ChamberQuery, now: Millis) {
    const found: ListedChamber[] = [];
    for (let cursor = before; ; ) {
      const page = await this.store.lists.listChambersOf(member, { before: cursor, limit: MEMBERSHIPS_PER_PAGE });
      const items = page.map((listing) => chamberItemView(listing, now));
      found.push(...items.filter((item) => phase === undefined || item.phase === phase));
      cursor = page.at(-1)?.chamberId;
      if (found.length >= limit || page.length < MEMBERSHIPS_PER_PAGE) return found.slice(0, limit);
      await nextTurn();
    }
  }

  /**
   * Calls `wake` after each commit to the chamber or account (ALL_CHAMBERS: to any chamber) until the returned function is called. A
   * wake-up carries no data.
   */
  follow(followed: StreamId, wake: () => void): () => void {
    const wakes = this.#followers.get(followed) ?? new Set();
    this.#followers.set(followed, wakes.add(wake));
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0 && this.#followers.get(followed) === wakes) this.#followers.delete(followed);
    };
  }
}

/** GET /chambers/:id/merkle-preview (specification, Allocations). */
export function merklePreview({ state, tree }: Chamber) {
  return { root: toHex(rootOf(tree)), eventCount: state.moveCount, asOfEventId: state.moveCount };
}

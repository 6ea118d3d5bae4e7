// The spine: one signed command goes in, is decided, appended, folded and answered; everybody else reads what the log says.
import { type ChamberItemView, chamberItemView } from '../../projections/views.ts';
import { rootOf } from '../crypto/merkle.ts';
import type { SignatureAges } from '../decide/freshness.ts';
import type { ForumLog } from '../log/log.ts';
import type { AccountEvent, ForumEvent, MoveEvent, ServiceEvent, ServiceFact } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import type { Hex, Millis, Phase } from '../vocabulary/values.ts';
import { Followers } from './followers.ts';
import { type BatchReport, CommitQueue } from './queue.ts';
import { type Account, type CacheLimits, type Chamber, Streams } from './streams.ts';
import {
  type Caller,
  type MoveRequest,
  type Rules,
  type Submission,
  submitCreate,
  submitMove,
  submitPersonality,
  submitRegister,
  submitService,
} from './submissions.ts';

export interface ForumOptions extends Rules {
  readonly log: ForumLog;
  /** The wall clock in milliseconds; tests move it by hand. */
  readonly clock: () => Millis;
  readonly cache: CacheLimits;
  readonly onFatal: (error: unknown) => void;
  readonly onBatch?: (report: BatchReport) => void;
}

export type { Chamber };

/** merkle-preview (specification, Allocations). */
export interface MerklePreview {
  readonly root: Hex;
  readonly eventCount: number;
  readonly asOfEventId: number;
}

export class Forum {
  readonly log: ForumLog;
  readonly #options: ForumOptions;
  readonly #streams: Streams;
  readonly #followers = new Followers();
  readonly #queue: CommitQueue;
  /** The creation of a chamber that each DID asked for last, while it is under way. */
  readonly #creating = new Map<string, Promise<MoveEvent>>();
  #latest: Millis;

  constructor(options: ForumOptions) {
    this.#options = options;
    this.log = options.log;
    this.#latest = options.log.lastAt;
    this.#streams = new Streams(options.log, options.cache);
    this.#queue = new CommitQueue({
      log: options.log,
      streams: this.#streams,
      wallClock: options.clock,
      now: () => this.now(),
      onCommitted: (chambers, report) => {
        for (const chamberId of chambers.keys()) this.#followers.wake(chamberId);
        options.onBatch?.(report);
      },
      onFatal: options.onFatal,
    });
  }

  /** The wall clock, except that it never falls: not below an earlier reading, nor below the newest event. */
  now(): Millis {
    this.#latest = Math.max(this.#latest, this.#options.clock());
    return this.#latest;
  }

  /** Makes the time told so far outlive the process: after a restart with the clock set back no phase goes back. */
  saveTime(): Promise<void> {
    return this.log.noteTime(this.now());
  }

  /** Refuses further commands; resolves when those accepted are on disk and answered. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  get ages(): SignatureAges {
    return this.#options.ages;
  }

  wallClock(): Millis {
    return this.#options.clock();
  }

  register(body: unknown, caller: Caller): Promise<AccountEvent | null> {
    return this.#submit(submitRegister(body, caller, this.#options));
  }

  changePersonality(body: unknown, caller: Caller): Promise<AccountEvent> {
    return this.#submit(submitPersonality(body, caller, this.#options));
  }

  /** One creator's chambers are made one after another: each counts those that are open by then. */
  async createChamber(body: unknown, caller: Caller): Promise<MoveEvent> {
    const { did } = caller;
    const create = async () => {
      const openChambers = await this.log.countOpenChambers(did);
      return this.#submit(submitCreate({ body, caller, openChambers }, this.#options));
    };
    const creation = (this.#creating.get(did) ?? Promise.resolve()).then(create, create);
    this.#creating.set(did, creation);
    try {
      return await creation;
    } finally {
      if (this.#creating.get(did) === creation) this.#creating.delete(did);
    }
  }

  move(request: MoveRequest): Promise<MoveEvent> {
    return this.#submit(submitMove(request, this.#options));
  }

  /** Appends an event of the service itself. */
  record(chamberId: number, fact: ServiceFact): Promise<ServiceEvent> {
    return this.#submit(submitService(chamberId, fact));
  }

  /** Loads before queueing, so that folding a cold stream holds up nobody else's move. */
  #submit<Event extends ForumEvent | null>(submission: Submission<Event>): Promise<Event> {
    const cold = submission.streams.filter((stream) => this.#streams.get(stream) === undefined);
    if (cold.length === 0) return this.#queue.submit(submission);
    return Promise.all(cold.map((stream) => this.#streams.load(stream))).then(() => this.#queue.submit(submission));
  }

  async chamber(chamberId: number): Promise<Chamber | undefined> {
    return this.#streams.chamber(chamberId) ?? (await this.#streams.load(chamberId));
  }

  async account(did: string): Promise<Account | undefined> {
    return this.#streams.account(did) ?? (await this.#streams.load(did));
  }

  async isRegistered(did: string): Promise<boolean> {
    return (await this.account(did)) !== undefined;
  }

  async chambers(query: {
    readonly phase: Phase | undefined;
    readonly before: number | undefined;
    readonly limit: number;
  }): Promise<readonly ChamberItemView[]> {
    const now = this.now();
    const listings = await this.log.listChambers({ ...query, now });
    return listings.map((listing) => chamberItemView(listing, now));
  }

  /** Calls `wake` whenever the chamber's log has grown; returns what ends that. */
  follow(chamberId: number, wake: () => void): () => void {
    return this.#followers.follow(chamberId, wake);
  }
}

export function merklePreview({ state, tree }: Chamber): MerklePreview {
  return { root: toHex(rootOf(tree)), eventCount: state.moveCount, asOfEventId: state.moveCount };
}

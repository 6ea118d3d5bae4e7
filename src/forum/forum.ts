// The spine: one signed command goes in, is decided, appended, published and answered; everybody else reads what the log says.
import { setImmediate as nextTick } from 'node:timers/promises';
import { chamberItemView } from '../../projections/listings.ts';
import type { ChamberItemView } from '../../projections/views.ts';
import { rootOf } from '../crypto/merkle.ts';
import { type ForumLog, StreamDamaged, type StreamId } from '../log/log.ts';
import type { SignatureAges } from '../moves/rules.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { ForumEvent } from '../vocabulary/events.ts';
import { type Hex, type Millis, type Phase, toHex } from '../vocabulary/values.ts';
import type { Command, EventOf } from './commands.ts';
import { CommitBatch, type Rules } from './commit-batch.ts';
import { type Account, type Chamber, Streams } from './streams.ts';

/** Bounds how long one batch keeps the process from doing anything else. */
export const BATCH_COMMANDS_MAX = 128;

export interface BatchReport {
  readonly commands: number;
  readonly events: number;
  readonly appendMillis: number;
}

export interface ForumOptions extends Rules {
  readonly log: ForumLog;
  /** The wall clock in milliseconds; tests move it by hand. */
  readonly clock: () => Millis;
  readonly stateCacheBytesMax: number;
  /** Commands that wait to be committed, beyond which submit rejects with FORUM_ERR_UNAVAILABLE. */
  readonly commitQueueMax: number;
  /** Memory and disk may differ: the process must stop. */
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

interface Pending {
  readonly command: Command;
  readonly resolve: (event: ForumEvent | null) => void;
  readonly reject: (error: unknown) => void;
  /** The signatureKey of a signed request. */
  readonly signature: string | null;
  /** Its streams were loaded once. If the cache has evicted them since, the batch loads them itself. */
  wasLoaded: boolean;
}

export class Forum {
  readonly log: ForumLog;
  readonly #options: ForumOptions;
  readonly #streams: Streams;
  readonly #followers = new Map<number, Set<() => void>>();
  readonly #queue: Pending[] = [];
  #warming = 0;
  #draining: Promise<void> | undefined;
  #isClosed = false;
  #lastChamberId: number;
  #latest: Millis;

  constructor(options: ForumOptions) {
    this.#options = options;
    this.log = options.log;
    this.#latest = options.log.lastAt;
    this.#lastChamberId = options.log.lastChamberId;
    this.#streams = new Streams(options.log, options.stateCacheBytesMax);
  }

  /** Resolves with the event once it is on disk; rejects with ForumError. A signature in the log returns its first event. */
  submit<C extends Command>(command: C): Promise<EventOf<C>> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw unavailable('the service is shutting down');
      if (this.#queue.length + this.#warming >= this.#options.commitQueueMax) {
        throw unavailable('too many moves are waiting to be committed, retry');
      }
      const signature = command.operation === 'record' ? null : command.caller.signature;
      this.#queue.push({ command, signature, resolve: resolve as Pending['resolve'], reject, wasLoaded: false });
      this.#draining ??= this.#drain();
    });
  }

  /** Group commit: batches one after another, each in one transaction. */
  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      // Commands that arrive in this tick join the batch.
      await nextTick();
      await this.#commit(this.#queue.splice(0, BATCH_COMMANDS_MAX));
    }
    this.#draining = undefined;
  }

  /**
   * Load the streams at their heads, look retries up, decide and stage each command, append, publish, answer, wake.
   * Nothing is suspended between the checks and the append, and nobody is answered before the commit is on disk.
   */
  async #commit(queued: readonly Pending[]): Promise<void> {
    const { clock, limits, ages, permits, onBatch } = this.#options;
    const streams = new Map<StreamId, Chamber | Account>();
    const openChambers = new Map<string, number>();
    const signatures: string[] = [];
    const batch: Pending[] = [];
    for (const pending of queued) {
      const { command, signature } = pending;
      try {
        const cold = this.#hold(command, streams);
        if (cold !== undefined && !pending.wasLoaded) {
          // It comes back to the queue when its streams are folded, and holds up nobody else meanwhile.
          void this.#warm(pending, cold);
          continue;
        }
        for (const stream of cold ?? []) {
          const state = await this.#streams.load(stream);
          if (state !== undefined) streams.set(stream, state);
        }
        if (command.operation === 'createChamber' && !openChambers.has(command.caller.did)) {
          const { did } = command.caller;
          openChambers.set(did, await this.log.countOpenChambers(did, limits.openChambersPerDidMax));
        }
      } catch (error) {
        pending.reject(error);
        continue;
      }
      batch.push(pending);
      if (signature !== null) signatures.push(signature);
    }
    try {
      const retried = (await this.log.findBySignature(signatures)).values();
      const times = { now: this.now(), wallClock: clock() };
      const lastChamberId = this.#lastChamberId;
      const staged = new CommitBatch({ ...times, limits, ages, permits, lastChamberId, streams, openChambers });
      const answers: (() => void)[] = [];
      for (const { command, signature, resolve, reject } of batch) {
        // In the order of the signatures above.
        const found = signature === null ? undefined : retried.next().value;
        try {
          if (found instanceof StreamDamaged) throw found;
          answers.push(resolve.bind(undefined, staged.decide(command, found)));
        } catch (error) {
          answers.push(reject.bind(undefined, error));
        }
      }

      const appendMillis = await this.#append(staged);
      this.#lastChamberId = staged.lastChamberId;
      for (const stream of staged.touched) this.#streams.publish(stream, streams.get(stream) as Chamber | Account);
      for (const answer of answers) answer();
      for (const stream of staged.touched) {
        if (typeof stream === 'number') for (const wake of this.#followers.get(stream) ?? []) wake();
      }
      onBatch?.({ commands: batch.length, events: staged.entries.length, appendMillis });
    } catch (error) {
      // Only these: commands that wait for their streams are committed later, and answered then.
      for (const { reject } of batch) reject(error);
    }
  }

  /** Puts the command's streams that are in memory into `streams`; returns the others, if there are any. */
  #hold(command: Command, streams: Map<StreamId, Chamber | Account>): readonly StreamId[] | undefined {
    let cold: StreamId[] | undefined;
    const did = command.operation === 'record' ? undefined : command.caller.did;
    const chamberId = 'chamberId' in command ? command.chamberId : undefined;
    for (const stream of [did, chamberId]) {
      if (stream === undefined || streams.has(stream)) continue;
      const state = this.#streams.cached(stream);
      if (state === undefined) cold = [...(cold ?? []), stream];
      else streams.set(stream, state);
    }
    return cold;
  }

  async #warm(pending: Pending, cold: readonly StreamId[]): Promise<void> {
    this.#warming++;
    try {
      for (const stream of cold) await this.#streams.load(stream);
      pending.wasLoaded = true;
      this.#queue.push(pending);
      this.#draining ??= this.#drain();
    } catch (error) {
      pending.reject(error);
    } finally {
      this.#warming--;
    }
  }

  /** Durable when it resolves. After an error the streams of the batch are folded again. */
  async #append({ entries, touched }: CommitBatch): Promise<Millis> {
    if (entries.length === 0) return 0;
    const started = performance.now();
    try {
      await this.log.append(entries);
    } catch (error) {
      for (const stream of touched) this.#streams.forget(stream);
      if (!(error instanceof ForumError)) this.#options.onFatal(error);
      throw error;
    }
    return performance.now() - started;
  }

  /** Rejects new commands with FORUM_ERR_UNAVAILABLE; resolves when those accepted are on disk and answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#draining !== undefined || this.#warming > 0) await (this.#draining ?? nextTick());
  }

  /** The wall clock, except that it never falls: not below an earlier reading, nor below the newest event. */
  now(): Millis {
    this.#latest = Math.max(this.#latest, this.#options.clock());
    return this.#latest;
  }

  /** Makes the time shown so far outlive the process: after a restart with the clock set back no phase goes back. */
  persistClock(): Promise<void> {
    return this.log.persistClock(this.now());
  }

  get ages(): SignatureAges {
    return this.#options.ages;
  }

  wallClock(): Millis {
    return this.#options.clock();
  }

  /** Of the states in memory, estimated. */
  get cachedBytes(): number {
    return this.#streams.bytes;
  }

  /** At its head; undefined for a chamber that does not exist. */
  async chamber(chamberId: number): Promise<Chamber | undefined> {
    return this.#streams.cached(chamberId) ?? (await this.#streams.load(chamberId));
  }

  /** At its head; undefined for a key that is not registered. */
  async account(did: string): Promise<Account | undefined> {
    return this.#streams.cached(did) ?? (await this.#streams.load(did));
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

  /** Calls `wake` after each commit to the chamber; returns a function that ends it. A wake-up carries no data. */
  follow(chamberId: number, wake: () => void): () => void {
    const wakes = this.#followers.get(chamberId) ?? new Set();
    this.#followers.set(chamberId, wakes.add(wake));
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0 && this.#followers.get(chamberId) === wakes) this.#followers.delete(chamberId);
    };
  }
}

export function merklePreview({ state, tree }: Chamber): MerklePreview {
  return { root: toHex(rootOf(tree)), eventCount: state.moveCount, asOfEventId: state.moveCount };
}

function unavailable(detail: string): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', detail, { headers: { 'Retry-After': '1' } });
}

// Group commit: submissions wait in one queue; a batch is decided in order, appended in one transaction, folded, and only
// then answered. Between the check and the append nothing is suspended, and no other batch is under way.
import { setImmediate as nextTick } from 'node:timers/promises';
import type { ForumLog } from '../log/log.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { type ForumEvent, fromLine } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import { Draft } from './draft.ts';
import { HeldStreams } from './held-streams.ts';
import type { Chamber, Streams } from './streams.ts';
import type { Submission } from './submissions.ts';

/** Bounds how long one batch keeps the process from doing anything else. */
export const BATCH_SUBMISSIONS_MAX = 128;

interface Pending {
  readonly submission: Submission;
  readonly resolve: (event: ForumEvent | null) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly event: ForumEvent | null } | { readonly error: unknown };

export interface QueueOptions {
  readonly log: ForumLog;
  readonly streams: Streams;
  /** The wall clock, for the age of signatures. */
  readonly wallClock: () => Millis;
  /** The clock that never falls, for `ts` and phases. */
  readonly now: () => Millis;
  readonly onCommitted: (chambers: ReadonlyMap<number, Chamber>, batch: BatchReport) => void;
  /** Memory and disk may differ: the process must stop. */
  readonly onFatal: (error: unknown) => void;
}

export interface BatchReport {
  readonly submissions: number;
  readonly events: number;
  readonly appendMillis: number;
}

export class CommitQueue {
  readonly #options: QueueOptions;
  readonly #pending: Pending[] = [];
  #lastChamberId: number;
  #draining: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#lastChamberId = options.log.lastChamberId;
  }

  /** Resolves with the event once it is on disk; rejects with ForumError. A signature in the log gives its first event. */
  submit<Event extends ForumEvent | null>(submission: Submission<Event>): Promise<Event> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw shuttingDown();
      this.#pending.push({ submission, resolve: resolve as Pending['resolve'], reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Refuses what comes from now on with FORUM_ERR_UNAVAILABLE; resolves when all that came before is answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#draining;
  }

  async #drain(): Promise<void> {
    while (this.#pending.length > 0) {
      // What arrives in this tick joins the batch.
      await nextTick();
      const batch = this.#pending.splice(0, BATCH_SUBMISSIONS_MAX);
      await this.#commit(batch).catch((error: unknown) => {
        for (const { reject } of batch) reject(error);
      });
    }
    this.#draining = undefined;
  }

  async #commit(batch: readonly Pending[]): Promise<void> {
    const { now, wallClock, onCommitted } = this.#options;
    const held = new HeldStreams(this.#options.streams);
    const firstLines = await this.#prepare(batch, held);
    const draft = new Draft(held, this.#lastChamberId, now());
    const outcomes = decideAll(batch, firstLines, draft, wallClock());
    const appendMillis = await this.#append(draft);
    this.#lastChamberId = draft.lastChamberId;
    const chambers = draft.publish();
    for (const [index, { resolve, reject }] of batch.entries()) {
      const outcome = outcomes[index] as Outcome;
      if ('error' in outcome) reject(outcome.error);
      else resolve(outcome.event);
    }
    onCommitted(chambers, { submissions: batch.length, events: draft.entries.length, appendMillis });
  }

  /** Loads what the batch needs; gives the line that each signature is in already. */
  async #prepare(batch: readonly Pending[], held: HeldStreams): Promise<readonly (string | undefined)[]> {
    for (const stream of new Set(batch.flatMap(({ submission }) => submission.streams))) {
      if (!held.hold(stream)) await held.load(stream);
    }
    const signed = batch.flatMap(({ submission }) => submission.signature ?? []);
    const lines = (await this.#options.log.findBySignature(signed)).values();
    return batch.map(({ submission }) => (submission.signature === null ? undefined : lines.next().value));
  }

  async #append(draft: Draft): Promise<Millis> {
    if (draft.entries.length === 0) return 0;
    const started = performance.now();
    try {
      await this.#options.log.append(draft.entries);
    } catch (error) {
      draft.discard();
      if (!(error instanceof ForumError)) this.#options.onFatal(error);
      throw error;
    }
    return performance.now() - started;
  }
}

function shuttingDown(): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', 'the service is shutting down', { headers: { 'Retry-After': '1' } });
}

function decideAll(
  batch: readonly Pending[],
  firstLines: readonly (string | undefined)[],
  draft: Draft,
  wallClock: Millis,
): readonly Outcome[] {
  const accepted = new Map<string, Outcome>();
  return batch.map(({ submission }, index) => {
    const first = firstLines[index];
    if (first !== undefined) return { event: fromLine(first) };
    const { signature } = submission;
    const twin = signature === null ? undefined : accepted.get(signature);
    if (twin !== undefined) return twin;
    const outcome = decideOne(submission, draft, wallClock);
    if (signature !== null && 'event' in outcome) accepted.set(signature, outcome);
    return outcome;
  });
}

function decideOne(submission: Submission, draft: Draft, wallClock: Millis): Outcome {
  try {
    return { event: submission.decide(draft, wallClock) };
  } catch (error) {
    return { error };
  }
}

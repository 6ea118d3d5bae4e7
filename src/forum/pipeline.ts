// The way of every command, on every store: decided on memory, over everything decided before it, then appended with the heads and
// signatures that the decision relied on; the response follows when the append has confirmed them.
//
// Why no command is lost, doubled, confirmed early, or decided on a state that never was:
//
//  1. A command is in one place at a time: being looked up (replay-look-ups.ts) or prepared, waiting, or an outcome of one batch. It leaves with
//     one response. `close` waits until all have left.
//  2. A decision and the staging of its event are one synchronous step on the states of the open batch, which are those of the batch in
//     flight where that has touched the stream, else those in memory. So within a process no decision overlooks an earlier one.
//  3. All decisions of a batch see one head of a stream, and the append is told it: by the event that follows it, by the account that an
//     event names, or among the batch's heads. The store writes nothing of a stream with another head, and reports that it grew. So what
//     is written was decided on heads, and what is rejected was rejected on heads: of a moment after the command came in.
//  4. What was decided on a stream that grew is decided again, once memory has the head that the append reported, and so is the whole open
//     batch, since it may stand on events that were not written. A failed append rejects its own commands, of which it wrote nothing
//     or all, and the open batch is decided again.
//  5. Every append looks up the signatures of its commands. One that led to a line before gets that line's response, whatever was decided
//     this time; nothing is written for it. Two requests with one signature that meet in memory share an event.
//  6. A signature that the log probably has is looked up first, apart from appends. So a replay takes no stream from the moves of a batch,
//     and no batch waits for it. What the look-up does not find is decided, and its append looks again (5).
//  7. Memory takes a state only once the append of its events has resolved; responses and wake-ups follow. A reader never sees an event
//     that a crash could take back.
//     An event that an agent says it has seen, or replies to, is read there too, after the request came in, unless it is the head in memory.
//     No later event changes it, so it is read once.
//  8. An agent's creations are prepared one after another, each after the one before has its response, and its open chambers are counted
//     again if another process has created a chamber since. So nobody creates more chambers than allowed.
//  9. A command whose decision needs the chain leaves the batch with nothing staged, is looked up (5), and is decided again with what the
//     chain answered. So no batch waits for a chain, a retry costs it no call, and what is written was decided on heads as in 3.
import { LogCorruption, StreamDamaged } from '../log/damage.ts';
import { ALL_CHAMBERS, type AppendResult } from '../log/log.ts';
import type { Store } from '../log/store.ts';
import type { StreamId } from '../log/stream-id.ts';
import type { ChainReader } from '../moves/chain-question.ts';
import { seenIn } from '../moves/move.ts';
import { type AnyChamberMove, chamberMoves } from '../moves/registry.ts';
import { detach } from '../process/detach.ts';
import { currentPayer, workFor } from '../process/main-thread.ts';
import { ForumError, unavailable } from '../vocabulary/errors.ts';
import { type ForumEvent, fromLine } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import { CommitBatch, hasMoved, type PendingCommand } from './batch.ts';
import { ChainReadings, NeedsChain, NOTHING_READ } from './chain-readings.ts';
import { type AccountCommand, basisPassed, type Command } from './commands.ts';
import { Creations } from './creations.ts';
import { type DecisionOptions, Decisions } from './decisions.ts';
import { Gathering } from './gathering.ts';
import { prepare } from './preparation.ts';
import { type FoundLine, LookUps } from './replay-look-ups.ts';
import type { ServiceClock } from './service-clock.ts';
import type { Streams } from './streams.ts';

/** Bounds how long one batch keeps the process from doing anything else. */
export const BATCH_COMMANDS_MAX = 128;

/** A decision that has waited longer for its append is made again: its `ts` must not be far behind (log/postgres/append.ts, 11). */
const DECISION_MS_MAX = 1_000;

/** Moved streams under one command before it is rejected with FORUM_ERR_UNAVAILABLE. */
const CONFLICTS_MAX = 50;

/**
 * What a question to the chain counts for its caller, as if it had taken so much of the main thread: the calls that answer it cost more than
 * time, and any client can sign with a new key, or send a wrong signature in the name of a wallet that is a contract.
 */
const CHAIN_QUESTION_MILLIS: Millis = 50;

export interface BatchReport {
  readonly commands: number;
  /** Events written. */
  readonly events: number;
  /** Streams that had grown, mostly since another process extended them first. */
  readonly conflicts: number;
  /** Commands that are decided again because of that. */
  readonly redecided: number;
  readonly appendMillis: number;
}

export interface PipelineOptions extends DecisionOptions {
  readonly store: Store;
  readonly streams: Streams;
  readonly clock: ServiceClock;
  /** The most commands that may wait to be committed; beyond it submit rejects with FORUM_ERR_UNAVAILABLE. */
  readonly commitQueueMax: number;
  /** Called after the responses with the streams that have grown, and the agents that created or joined a chamber. */
  readonly onGrown: (streams: Iterable<StreamId>) => void;
  /** Memory and disk may differ: the process must stop. */
  readonly onFatal: (error: unknown) => void;
  readonly onBatch?: ((report: BatchReport) => void) | undefined;
}

export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #store: Store;
  readonly #streams: Streams;
  readonly #decisions: Decisions;
  /** Commands that can't be decided in the open batch. */
  #waiting: PendingCommand[] = [];
  /** Commands that are being looked up or prepared, or wait for the chain. */
  #preparing = 0;
  readonly #lookUps: LookUps;
  #open: CommitBatch;
  #isRunning = false;
  readonly #creations: Creations;
  #chain = new ChainReadings();
  readonly #gathering = new Gathering();
  #closing: Promise<void> | undefined;
  /** Returns why no command is taken; undefined while commands are. */
  halted: () => ForumError | undefined = () => undefined;
  /** Once it is closed: called when a command may have been the last one. */
  #onLeft: (() => void) | undefined;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#streams = options.streams;
    this.#decisions = new Decisions(options);
    this.#lookUps = new LookUps(options.store.log);
    this.#creations = new Creations(options.store, options.limits);
    this.#open = new CommitBatch(options.streams);
  }

  /** Rules that need a chain ask this one; without one they can't be set. */
  useChain(reader: ChainReader): void {
    this.#chain = new ChainReadings(reader);
  }

  /** Resolves with the event once it is on disk; rejects with ForumError. A signature in the log returns its first event. */
  submit(command: Command): Promise<ForumEvent | null> {
    const { promise, resolve, reject } = Promise.withResolvers<ForumEvent | null>();
    const unanswered = this.#preparing + this.#waiting.length + this.#open.outcomes.length;
    const halted = this.halted();
    if (this.#closing !== undefined) reject(unavailable('the service is shutting down'));
    else if (halted !== undefined) reject(halted);
    else if (unanswered >= this.#options.commitQueueMax) {
      reject(unavailable('too many moves are waiting to be committed, retry'));
    } else {
      const { did, signature } = command.operation === 'record' ? NO_SIGNER : command.caller;
      const chamberId = 'chamberId' in command ? command.chamberId : undefined;
      const streams: StreamId[] = did === null ? [] : [did];
      if (chamberId !== undefined) streams.push(chamberId);
      const seen = chamberId !== undefined && 'body' in command ? seenIn(command.body.json) : undefined;
      this.#decide({
        command,
        signature,
        streams,
        payer: currentPayer(),
        seen,
        replyTo: chamberId === undefined ? undefined : replyToIn(command),
        takesReply: undefined,
        response: promise,
        resolve,
        reject,
        isLookedUp: false,
        isHeld: false,
        isCounted: false,
        conflicts: 0,
        openChambers: undefined,
        seenLeaf: undefined,
        readChain: NOTHING_READ,
      });
    }
    return promise;
  }

  /** Decides the command in the open batch if that can be done there and on memory; else it waits, or is prepared. */
  #decide(pending: PendingCommand): void {
    const { command, signature } = pending;
    const batch = this.#open;
    const { outcomes, touched, accepted, before } = batch;
    // The event would name an event of its signer's account that may not be written.
    const namesStaged =
      'caller' in command && !CHANGE_ACCOUNT.has(command.operation) && touched.has(command.caller.did);
    if (outcomes.length >= BATCH_COMMANDS_MAX || namesStaged) {
      this.#waiting.push(pending);
      return;
    }
    const acceptedIn = signature !== null && accepted.has(signature) ? batch : before;
    const twin = signature === null ? undefined : acceptedIn?.accepted.get(signature);
    const areChambersCounted =
      command.operation !== 'createChamber' || this.#creations.isCurrent(pending.openChambers, batch);
    const isKnown = signature !== null && !pending.isLookedUp && this.#store.log.mayHold(signature);
    if (twin !== undefined) outcomes.push({ pending, event: twin });
    else if (isKnown) {
      pending.isLookedUp = true;
      this.#decideLater(pending, this.#lookUps.find(signature));
      return;
    } else if (areChambersCounted && batch.take(pending)) {
      const outcome = this.#decisions.decide(pending, batch, this.#options.clock);
      const { error } = outcome;
      if (error instanceof NeedsChain) {
        this.#decideLater(pending, this.#readChain(pending, error));
        return;
      }
      outcomes.push(outcome);
    } else {
      const parts = { log: this.#store.log, streams: this.#streams, creations: this.#creations };
      this.#decideLater(pending, prepare(pending, parts));
      return;
    }
    if (outcomes.at(-1)?.event === null) batch.confirm(pending);
    if (!this.#isRunning) {
      this.#isRunning = true;
      detach(this.#run(), this.#options.onFatal);
    }
    this.#gathering.noteSize(outcomes.length);
  }

  /** The command is in no batch until what its decision lacks is read, or the line that its signature led to is found. */
  #decideLater(pending: PendingCommand, reading: Promise<FoundLine | undefined>): void {
    detach(this.#decideAfter(pending, reading), this.#options.onFatal);
  }

  async #decideAfter(pending: PendingCommand, reading: Promise<FoundLine | undefined>): Promise<void> {
    this.#preparing++;
    try {
      const line = await reading;
      if (line === undefined) {
        // Others may have come in between, also those that waited for the same.
        workFor(pending.payer);
        this.#decide(pending);
      } else this.#respondFromLog(pending, line);
    } catch (error) {
      pending.reject(error);
    } finally {
      this.#preparing--;
      this.#onLeft?.();
    }
  }

  /** A retry gets its first response before the chain is asked. */
  async #readChain(pending: PendingCommand, { question }: NeedsChain): Promise<FoundLine | undefined> {
    const { signature, payer } = pending;
    const found = signature === null ? undefined : await this.#store.log.find([signature]);
    const line = found?.get(signature ?? '');
    if (line !== undefined) return line;
    payer?.charge(CHAIN_QUESTION_MILLIS);
    pending.readChain = await this.#chain.read(question);
    return undefined;
  }

  /** Group commit: one batch after another, for as long as there are commands. */
  async #run(): Promise<void> {
    for (;;) {
      if (this.#open.outcomes.length === 0 && this.#waiting.length > 0) this.#decideWaiting();
      const batch = this.#open;
      if (batch.outcomes.length === 0) break;
      await this.#gathering.wait(batch.outcomes);
      const startedAt = performance.now();
      const appending = this.#store.log.append(batch);
      this.#open = new CommitBatch(this.#streams, batch);
      if (this.#waiting.length > 0) this.#decideWaiting();
      try {
        const result = await appending;
        this.#gathering.appendMillis = performance.now() - startedAt;
        this.#settle(batch, result);
        if (this.#gathering.appendMillis > DECISION_MS_MAX) this.#decideAgain([]);
      } catch (error) {
        this.#fail(batch, error);
      }
    }
    this.#isRunning = false;
    this.#onLeft?.();
  }

  #decideWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const pending of waiting) this.#decide(pending);
  }

  /** Publishes the states that were written, then responds, then wakes those who follow the log. */
  #settle(batch: CommitBatch, result: AppendResult): void {
    const { moved, found } = result;
    const grown = new Set<StreamId>();
    for (const stream of batch.touched) {
      const state = batch.states.get(stream);
      if (!state || moved.has(stream)) continue;
      this.#streams.publish(stream, state);
      grown.add(stream);
    }
    this.#creations.lastChamberId = batch.lastChamberId ?? this.#creations.lastChamberId;
    if (moved.size > 0) this.#noteMoved(batch, moved);
    this.#open.before = undefined;
    const again: PendingCommand[] = [];
    for (const outcome of batch.outcomes) {
      const { pending, event, error } = outcome;
      const line = pending.signature === null ? undefined : found.get(pending.signature);
      if (line !== undefined) this.#respondFromLog(pending, line);
      else if (moved.size > 0 && hasMoved(outcome, result)) {
        if (this.#mayDecideAgain(pending)) again.push(pending);
      } else if (error !== undefined) pending.reject(error);
      else {
        if (event?.type === 'chamber.created' || event?.type === 'chamber.joined') grown.add(event.did);
        pending.resolve(event);
      }
    }
    if (moved.size > 0) this.#decideAgain(again);
    if (grown.size > 0) this.#options.onGrown(grown.add(ALL_CHAMBERS));
    this.#options.onBatch?.({
      commands: batch.outcomes.length,
      events: batch.entries.reduce((events, { stream }) => events + Number(!moved.has(stream)), 0),
      conflicts: moved.size,
      redecided: again.length,
      appendMillis: this.#gathering.appendMillis,
    });
  }

  /** It wrote none of the batch, or all of it without a response: a retry learns which. */
  #fail(batch: CommitBatch, error: unknown): void {
    this.#open.before = undefined;
    for (const { pending } of batch.outcomes) pending.reject(error);
    if (!(error instanceof ForumError)) this.#options.onFatal(error);
    this.#decideAgain([]);
  }

  #noteMoved(batch: CommitBatch, moved: AppendResult['moved']): void {
    for (const [stream, head] of moved) {
      const before = batch.headsBefore.get(stream) ?? 0;
      if (head < before) throw new LogCorruption(`stream ${stream} ends at event ${head} and had ${before} before`);
      if (stream === ALL_CHAMBERS) this.#creations.noteMoved(head);
      else this.#streams.noteHead(stream, head);
    }
  }

  #respondFromLog(pending: PendingCommand, line: FoundLine): void {
    this.#decisions.giveBack(pending);
    // A line may be long, and any client can send its request again.
    workFor(pending.payer);
    if (line instanceof StreamDamaged) pending.reject(line);
    else pending.resolve(fromLine(line));
    workFor(undefined);
  }

  /** A command that acted on what has passed, or has met too many other writers, is rejected instead. */
  #mayDecideAgain(pending: PendingCommand): boolean {
    if ('basis' in pending.command) pending.reject(basisPassed());
    else if (++pending.conflicts > CONFLICTS_MAX) {
      pending.reject(unavailable('the chamber is too busy, retry'));
    } else return true;
    return false;
  }

  /** These commands first, which were decided before those of the open batch. */
  #decideAgain(first: readonly PendingCommand[]): void {
    const { outcomes } = this.#open;
    this.#open = new CommitBatch(this.#streams);
    for (const pending of [...first, ...outcomes.map((outcome) => outcome.pending)]) this.#decide(pending);
  }

  /** Rejects new commands with FORUM_ERR_UNAVAILABLE; resolves when those accepted are on disk and have their responses. */
  close(): Promise<void> {
    this.#closing ??= this.#untilAllLeft();
    return this.#closing;
  }

  async #untilAllLeft(): Promise<void> {
    while (this.#isRunning || this.#preparing > 0) {
      await new Promise<void>((resolve) => {
        this.#onLeft = resolve;
      });
    }
  }
}

const NO_SIGNER = { did: null, signature: null };
const CHANGE_ACCOUNT: ReadonlySet<Command['operation']> = new Set<AccountCommand['operation']>([
  'register',
  'changePersonality',
  'retire',
  'retireByWallet',
]);

function replyToIn(command: Command): number | undefined {
  if (!('chamberId' in command && 'body' in command)) return undefined;
  const move: AnyChamberMove = chamberMoves[command.operation];
  return move.replyTo?.(command.body.json);
}

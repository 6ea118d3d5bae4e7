// How each command is processed: decided against in-memory state, on top of everything decided before, then appended together with the
// heads and signatures that the decision depends on. The response follows once the append has confirmed these.
//
// Why no command is lost, duplicated, confirmed early, or decided on a state that was never committed:
//
//  1. At any time a command is in one place: waiting for a read, waiting for a batch, or an outcome of one batch. It leaves with one
//     response, and `close` waits until all commands have left.
//  2. Deciding and staging are one synchronous step on the states of the open batch. If the batch in flight has extended a stream, its
//     state is used, otherwise the state in memory. So no decision overlooks an earlier one of this process.
//  3. All decisions of a batch use the same head of a stream, and the append states this head. If a stream has a different head, the
//     store writes nothing to it and reports the head. So events and rejections alike were decided on heads that were current after the
//     command arrived.
//  4. Commands that were decided on an outdated head are decided again, and so is the whole open batch, because it may build on events
//     that were not written. A failed append rejects its own commands, of which it wrote either none or all.
//  5. Every append looks up the signatures of its commands. If a signature is in the log, its command gets the response of that line,
//     whatever was decided this time. Two requests with the same signature that are in memory at the same time share an event.
//  6. A signature that is probably in the log is looked up before the decision, so that replays do not cause conflicts for other moves in
//     the batch. If this look-up misses a signature, 5 applies.
//  7. States are published, and responses and wake-ups are sent, only after the append of their events has resolved. So no reader sees an
//     event that a crash could undo. Earlier events that a move names are also read from the log; later events do not change them.
//  8. An agent's creations are prepared one after another, and its open chambers are counted again if another process has created a
//     chamber since. So no agent creates more chambers than allowed.
//  9. A decision that needs the chain stages nothing and is repeated with the chain's result. So no batch waits for a chain, and 3 still
//     holds.
import { LogCorruption, StreamDamaged } from '../log/damage.ts';
import { ALL_CHAMBERS, type AppendResult } from '../log/log.ts';
import type { Store } from '../log/store.ts';
import type { StreamId } from '../log/stream-id.ts';
import type { ChainQuestion, ChainReader } from '../moves/chain-question.ts';
import { seenEventIdIn } from '../moves/move.ts';
import { type AnyChamberMove, chamberMoves } from '../moves/registry.ts';
import { detach } from '../process/detach.ts';
import type { MainThreadMeter } from '../process/main-thread.ts';
import { ForumError, unavailable } from '../vocabulary/errors.ts';
import { type ForumEvent, fromLine } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import { CommitBatch, hasConflict, NO_READINGS, type Outcome, type PendingCommand, type Readings } from './batch.ts';
import { ChainReadings, NeedsChain } from './chain-readings.ts';
import { type AccountCommand, basisOutdated, type Command } from './commands.ts';
import { Creations } from './creations.ts';
import { type DecisionOptions, Decisions } from './decisions.ts';
import { GroupCommitTimer } from './group-commit-timer.ts';
import { prepare } from './preparation.ts';
import { type FoundLine, LookUps } from './replay-look-ups.ts';
import type { ServiceClock } from './service-clock.ts';
import type { Streams } from './streams.ts';

/** Limits how long one batch blocks the process. */
export const BATCH_COMMANDS_MAX = 128;

/**
 * A decision that has waited longer for its append is repeated, because its `ts` must not be far in the past
 * (log/postgres/append-statement.ts, 8).
 */
const DECISION_MS_MAX = 1_000;

/** After this many conflicts a command is rejected with FORUM_ERR_UNAVAILABLE. */
const CONFLICTS_MAX = 50;

/**
 * Charged for each query of the chain, as if it were main-thread time. The calls cost more than time, and anyone can cause them by
 * signing with a new key, or with a wrong signature for a contract wallet.
 */
const CHAIN_QUESTION_MILLIS: Millis = 50;

export interface BatchReport {
  readonly commands: number;
  readonly events: number;
  /** Streams that had advanced, usually because another process extended them first. */
  readonly conflicts: number;
  readonly redecided: number;
  readonly appendMillis: number;
}

export interface PipelineOptions extends DecisionOptions {
  readonly store: Store;
  readonly streams: Streams;
  readonly clock: ServiceClock;
  readonly meter: MainThreadMeter;
  /** The maximum number of commands waiting to be committed; beyond it `submit` rejects with FORUM_ERR_UNAVAILABLE. */
  readonly commitQueueMax: number;
  /** Called after the responses, with the streams that have grown and the agents that created or joined a chamber. */
  readonly onGrown: (streams: Iterable<StreamId>) => void;
  /** Called if memory and disk may differ: the process must exit. */
  readonly onFatal: (error: unknown) => void;
  readonly onBatch?: ((report: BatchReport) => void) | undefined;
}

/** The read that a command needs before it can be decided. During the read, the command is in no batch. */
type Reading =
  | { readonly kind: 'lookUp'; readonly signature: string }
  /** A state that the decision depends on is not in memory. */
  | { readonly kind: 'prepare' }
  | { readonly kind: 'askChain'; readonly question: ChainQuestion };

/** The next step for a command without a response. */
type Step =
  | { readonly kind: 'decide' }
  /** A request with the same signature has already produced this event, which is not yet in the log. */
  | { readonly kind: 'repeat'; readonly event: ForumEvent | null }
  /** The command can't be in the open batch. */
  | { readonly kind: 'wait' }
  | Reading;

const DECIDE: Step = { kind: 'decide' };
const WAIT: Step = { kind: 'wait' };
const PREPARE: Reading = { kind: 'prepare' };

export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #store: Store;
  readonly #streams: Streams;
  readonly #decisions: Decisions;
  /** Commands that can't be in the open batch. */
  #waiting: PendingCommand[] = [];
  /** The number of commands that wait for a read. */
  #reading = 0;
  readonly #lookUps: LookUps;
  #open: CommitBatch;
  #isRunning = false;
  readonly #creations: Creations;
  #chain = new ChainReadings();
  readonly #commitTimer = new GroupCommitTimer();
  #closing: Promise<void> | undefined;
  /** The reason why commands are rejected; undefined while they are accepted. */
  halted: () => ForumError | undefined = () => undefined;
  /** Called after `close` whenever a command leaves. */
  #onLeft: (() => void) | undefined;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#streams = options.streams;
    this.#decisions = new Decisions(options);
    this.#lookUps = new LookUps(options.store.log, options.meter);
    this.#creations = new Creations(options.store, options.limits);
    this.#open = new CommitBatch(options.streams);
  }

  useChain(reader: ChainReader): void {
    this.#chain = new ChainReadings(reader);
  }

  submit(command: Command): Promise<ForumEvent | null> {
    const { promise, resolve, reject } = Promise.withResolvers<ForumEvent | null>();
    const pendingCount = this.#reading + this.#waiting.length + this.#open.outcomes.length;
    const halted = this.halted();
    if (this.#closing !== undefined) reject(unavailable('the service is shutting down'));
    else if (halted !== undefined) reject(halted);
    else if (pendingCount >= this.#options.commitQueueMax) {
      reject(unavailable('too many moves are waiting to be committed, retry'));
    } else {
      const { did, signature } = command.operation === 'record' ? NO_SIGNER : command.caller;
      const chamberId = 'chamberId' in command ? command.chamberId : undefined;
      const streams: StreamId[] = did === null ? [] : [did];
      if (chamberId !== undefined) streams.push(chamberId);
      const seenEventId = chamberId !== undefined && 'body' in command ? seenEventIdIn(command.body.json) : undefined;
      this.#advance({
        command,
        signature,
        streams,
        payer: this.#options.meter.payer,
        seenEventId,
        replyTo: chamberId === undefined ? undefined : replyToIn(command),
        response: promise,
        resolve,
        reject,
        readings: NO_READINGS,
        conflicts: 0,
        isCharged: false,
      });
    }
    return promise;
  }

  #advance(pending: PendingCommand): void {
    const step = this.#nextStep(pending);
    if (step.kind === 'decide') this.#decide(pending);
    else if (step.kind === 'repeat') this.#add({ pending, event: step.event });
    else if (step.kind === 'wait') this.#waiting.push(pending);
    else this.#readFor(pending, step);
  }

  #nextStep(pending: PendingCommand): Step {
    const { command, signature, readings } = pending;
    const batch = this.#open;
    // The event would refer to an event of the signer's account that may never be written.
    const followsStagedAccount =
      'caller' in command && !CHANGE_ACCOUNT.has(command.operation) && batch.touched.has(command.caller.did);
    if (batch.outcomes.length >= BATCH_COMMANDS_MAX || followsStagedAccount) return WAIT;
    if (signature !== null) {
      const event = batch.acceptedBy(signature);
      if (event !== undefined) return { kind: 'repeat', event };
      if (!readings.isLookedUp && this.#store.log.mayContain(signature)) return { kind: 'lookUp', signature };
    }
    const areChambersCounted =
      command.operation !== 'createChamber' || this.#creations.isCurrent(readings.openChambers, batch);
    return areChambersCounted && batch.take(pending) ? DECIDE : PREPARE;
  }

  #decide(pending: PendingCommand): void {
    const outcome = this.#decisions.decide(pending, this.#open, this.#options.clock);
    const { error } = outcome;
    if (error instanceof NeedsChain) this.#readFor(pending, { kind: 'askChain', question: error.question });
    else this.#add(outcome);
  }

  #add(outcome: Outcome): void {
    const batch = this.#open;
    batch.outcomes.push(outcome);
    if (outcome.event === null) batch.confirm(outcome.pending);
    if (!this.#isRunning) {
      this.#isRunning = true;
      // This writes the commands of all callers, so no caller is charged.
      this.#options.meter.run(undefined, () => detach(this.#run(), this.#options.onFatal));
    }
    this.#commitTimer.noteSize(batch.outcomes.length);
  }

  #readFor(pending: PendingCommand, reading: Reading): void {
    this.#options.meter.run(pending.payer, () => detach(this.#advanceAfter(pending, reading), this.#options.onFatal));
  }

  async #advanceAfter(pending: PendingCommand, reading: Reading): Promise<void> {
    this.#reading++;
    try {
      const result = await this.#read(pending, reading);
      if (typeof result === 'string' || result instanceof StreamDamaged) this.#respondFromLog(pending, result);
      else {
        pending.readings = result;
        this.#advance(pending);
      }
    } catch (error) {
      pending.reject(error);
    } finally {
      this.#reading--;
      this.#onLeft?.();
    }
  }

  /** Returns the data for the next decision, or the line if the signature is already in the log. */
  async #read(pending: PendingCommand, reading: Reading): Promise<Readings | FoundLine> {
    const { signature, payer, readings } = pending;
    if (reading.kind === 'prepare') {
      return prepare(pending, { log: this.#store.log, streams: this.#streams, creations: this.#creations });
    }
    if (reading.kind === 'lookUp') {
      return (await this.#lookUps.find(reading.signature)) ?? { ...readings, isLookedUp: true };
    }
    // A retry gets its first response without a query of the chain.
    const found = signature === null ? undefined : await this.#store.log.find([signature]);
    const line = found?.get(signature ?? '');
    if (line !== undefined) return line;
    payer?.charge(CHAIN_QUESTION_MILLIS);
    return { ...readings, readChain: await this.#chain.read(reading.question) };
  }

  /** Group commit: writes one batch after another until there are no commands left. */
  async #run(): Promise<void> {
    for (;;) {
      if (this.#open.outcomes.length === 0 && this.#waiting.length > 0) this.#decideWaiting();
      const batch = this.#open;
      if (batch.outcomes.length === 0) break;
      await this.#commitTimer.wait(batch.outcomes);
      const startedAt = performance.now();
      const appending = this.#store.log.append(batch);
      this.#open = new CommitBatch(this.#streams, batch);
      if (this.#waiting.length > 0) this.#decideWaiting();
      try {
        const result = await appending;
        this.#commitTimer.appendMillis = performance.now() - startedAt;
        this.#complete(batch, result);
        if (this.#commitTimer.appendMillis > DECISION_MS_MAX) this.#decideAgain([]);
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
    for (const pending of waiting) this.#advance(pending);
  }

  /** Publishes the written states, then sends the responses, then wakes followers. */
  #complete(batch: CommitBatch, result: AppendResult): void {
    const { conflicts, found } = result;
    const grown = new Set<StreamId>();
    for (const stream of batch.touched) {
      const state = batch.states.get(stream);
      if (!state || conflicts.has(stream)) continue;
      this.#streams.publish(stream, state, batch.withheldThrough);
      grown.add(stream);
    }
    this.#creations.lastChamberId = batch.lastChamberId ?? this.#creations.lastChamberId;
    if (conflicts.size > 0) this.#noteConflicts(batch, conflicts);
    this.#open.before = undefined;
    const again: PendingCommand[] = [];
    for (const outcome of batch.outcomes) {
      const { pending, event, error } = outcome;
      const line = pending.signature === null ? undefined : found.get(pending.signature);
      if (line !== undefined) this.#respondFromLog(pending, line);
      else if (conflicts.size > 0 && hasConflict(outcome, result)) {
        if (this.#mayDecideAgain(pending)) again.push(pending);
      } else if (error !== undefined) pending.reject(error);
      else {
        if (event?.type === 'chamber.created' || event?.type === 'chamber.joined') grown.add(event.did);
        pending.resolve(event);
      }
    }
    if (conflicts.size > 0) this.#decideAgain(again);
    if (grown.size > 0) this.#options.onGrown(grown.add(ALL_CHAMBERS));
    this.#options.onBatch?.({
      commands: batch.outcomes.length,
      events: batch.entries.reduce((events, { stream }) => events + Number(!conflicts.has(stream)), 0),
      conflicts: conflicts.size,
      redecided: again.length,
      appendMillis: this.#commitTimer.appendMillis,
    });
  }

  /** The store wrote either nothing, or the whole batch without confirmation. A retry finds out which. */
  #fail(batch: CommitBatch, error: unknown): void {
    this.#open.before = undefined;
    for (const { pending } of batch.outcomes) pending.reject(error);
    if (!(error instanceof ForumError)) this.#options.onFatal(error);
    this.#decideAgain([]);
  }

  #noteConflicts(batch: CommitBatch, conflicts: AppendResult['conflicts']): void {
    for (const [stream, head] of conflicts) {
      const before = batch.headsBefore.get(stream) ?? 0;
      if (head < before)
        throw new LogCorruption(`stream ${stream} ends at event ${head}, but event ${before} was read before`);
      if (stream === ALL_CHAMBERS) this.#creations.noteCreatedElsewhere(head);
      else this.#streams.noteHead(stream, head);
    }
  }

  #respondFromLog(pending: PendingCommand, line: FoundLine): void {
    this.#decisions.refund(pending);
    if (line instanceof StreamDamaged) pending.reject(line);
    // The line may be long and anyone can repeat a request, so the caller is charged.
    else pending.resolve(this.#options.meter.run(pending.payer, () => fromLine(line)));
  }

  /** Returns false if the command was rejected instead, for an outdated basis or too many conflicts. */
  #mayDecideAgain(pending: PendingCommand): boolean {
    if ('basis' in pending.command) pending.reject(basisOutdated());
    else if (++pending.conflicts > CONFLICTS_MAX) {
      pending.reject(unavailable('the chamber is too busy, retry'));
    } else return true;
    return false;
  }

  /** Decides the given commands first, because they preceded those of the open batch. */
  #decideAgain(first: readonly PendingCommand[]): void {
    const { outcomes } = this.#open;
    this.#open = new CommitBatch(this.#streams);
    for (const pending of [...first, ...outcomes.map((outcome) => outcome.pending)]) this.#advance(pending);
  }

  close(): Promise<void> {
    this.#closing ??= this.#untilAllLeft();
    return this.#closing;
  }

  async #untilAllLeft(): Promise<void> {
    while (this.#isRunning || this.#reading > 0) {
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

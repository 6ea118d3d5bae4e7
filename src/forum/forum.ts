// The spine: a command is decided, appended, published and answered; everything else follows the log.
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import { chamberItemView } from '../../projections/listings.ts';
import type { ChamberItemView } from '../../projections/views.ts';
import { rootOf } from '../crypto/merkle.ts';
import {
  ALL_CHAMBERS,
  type ForumLog,
  type LogEntry,
  type LookUp,
  type Registration,
  StreamDamaged,
  type StreamId,
} from '../log/log.ts';
import { SignatureFilter } from '../log/signature-filter.ts';
import { changePersonality } from '../moves/change-personality.ts';
import { createChamber } from '../moves/create-chamber.ts';
import { type ChamberLimits, parseBody } from '../moves/move.ts';
import { isUnchanged, parseRegistration, register, registeredDid } from '../moves/register.ts';
import { type AnyChamberMove, chamberMoves } from '../moves/registry.ts';
import { requireFresh, type SignatureAges } from '../moves/rules.ts';
import { decideServiceFact, ServiceFactRejected } from '../moves/service-facts.ts';
import { ForumError, rateError } from '../vocabulary/errors.ts';
import { type AccountFact, type ChamberEvent, type ForumEvent, fromLine } from '../vocabulary/events.ts';
import { parseId } from '../vocabulary/parameters.ts';
import { type Hex, type Millis, type Phase, SIGNATURE_AGES, toHex } from '../vocabulary/values.ts';
import {
  type Caller,
  type Command,
  type CreateCommand,
  chamberNotFound,
  type EventOf,
  type MoveCommand,
  type PersonalityCommand,
  type RecordCommand,
  type RegisterCommand,
} from './commands.ts';
import {
  type Account,
  type Author,
  type Chamber,
  type Circumstances,
  stageAccountEvent,
  stageChamberEvent,
} from './staging.ts';
import { Streams } from './streams.ts';
import { TodoLists } from './todo-lists.ts';

/**
 * Bounds how long one batch keeps the process from doing anything else. A batch may hold twice as many if moves were decided on memory
 * while others were looked up.
 */
export const BATCH_COMMANDS_MAX = 128;
/** Of the event loop, in which commands join a batch of a log that is not shared. */
const TURNS_PER_BATCH = 2;
/**
 * On a shared log a batch costs the server as much as a dozen moves. So it waits for as many commands as the last one had, which are
 * likely to come; but for no more than these, and no longer.
 */
const COMMANDS_AWAITED_MAX = 24;
const GATHER_MS_MAX = 2;

const CLOSE_POLL_MS = 5;

const MEMBERSHIPS_PER_PAGE = 200;

/** Conflicts of one command before it is rejected with FORUM_ERR_UNAVAILABLE. */
const CONFLICTS_MAX = 50;

/**
 * How many events a batch reads of streams that other processes have extended, and how long it waits for them. Commands on streams
 * that are still behind wait for their own streams, and delay no others.
 */
const CATCH_UP_EVENTS_MAX = 128;
const CATCH_UP_MS_MAX = 20;

export interface BatchReport {
  readonly commands: number;
  /** Events written. */
  readonly events: number;
  /** Streams of which nothing was written, mostly since another process extended them first. */
  readonly conflicts: number;
  /** Commands that are decided again because of that. */
  readonly redecided: number;
  readonly appendMillis: number;
}

/** Limits how often an agent may command. */
export interface AgentRate {
  /** Takes one command from the agent's allowance and returns 0, or returns how long the agent must wait. */
  take(did: string): Millis;
  /** For a command that proved to be a retry. */
  giveBack(did: string): void;
}

export interface ForumOptions {
  readonly log: ForumLog;
  readonly limits: ChamberLimits;
  readonly ages: SignatureAges;
  /** Charged for each command of an agent that is no retry; without it agents are not limited. */
  readonly agentRate?: AgentRate;
  /** Charged too for each of them that may change the agent's account. */
  readonly accountChangeRate?: AgentRate;
  /** Whether an agent may register, create a chamber or join one. */
  readonly permits: (did: string) => boolean;
  /** The wall clock in milliseconds; tests move it by hand. */
  readonly clock: () => Millis;
  readonly stateCacheBytesMax: number;
  /** The most commands that may wait to be committed; beyond it submit rejects with FORUM_ERR_UNAVAILABLE. */
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

/** The operations that a ban prevents. A banned member may finish its chambers. */
const NEED_PERMISSION: ReadonlySet<Command['operation']> = new Set(['register', 'createChamber', 'join']);

/** Each adds a long line to an account; a registration counts if it is signed. */
const CHANGE_ACCOUNT: ReadonlySet<Command['operation']> = new Set(['register', 'changePersonality']);

const SERVICE: Author = { did: null, request: null, signature: null };

interface ChamberQuery {
  readonly member?: string | undefined;
  readonly phase: Phase | undefined;
  readonly before: number | undefined;
  readonly limit: number;
}

interface Pending {
  readonly command: Command;
  /** The streams that it is decided on. */
  readonly streams: readonly StreamId[];
  readonly resolve: (event: ForumEvent | null) => void;
  readonly reject: (error: unknown) => void;
  /** The signatureKey of a signed request. */
  readonly signature: string | null;
  /** Its streams were loaded for it, and stay in memory until this is called, when it is answered. */
  release: (() => void) | undefined;
  /** It can't be decided on what is in memory, without a look at the log. */
  needsLook: boolean;
  /** How often an append gave it back. */
  conflicts: number;
  /** It has taken from its agent's rate. */
  isCounted: boolean;
}

interface Outcome {
  readonly pending: Pending;
  readonly event: ForumEvent | null;
  /** Of a rejection. */
  readonly error?: unknown;
}

/** Commands that are decided one after another, each on the effects of those before it, and then written together. */
class Batch {
  readonly outcomes: Outcome[] = [];
  /** The states that it is decided on, then the staged ones; a stream without events is absent. */
  readonly streams = new Map<StreamId, Chamber | Account>();
  /** The heads that were taken from memory, without a look at the log. */
  readonly heads = new Map<StreamId, number>();
  /** Each creator's chambers that are not committed. */
  readonly openChambers = new Map<string, number>();
  readonly accepted = new Map<string, ForumEvent | null>();
  readonly entries: LogEntry[] = [];
  readonly registrations: Registration[] = [];
  /** Streams with staged events. */
  readonly touched = new Set<StreamId>();
  lastChamberId = 0;
  /** When the latest decision was made: for `ts` and phases, never falls. */
  now: Millis = 0;
}

export class Forum {
  readonly log: ForumLog;
  readonly todoLists: TodoLists;
  readonly #options: ForumOptions;
  readonly #streams: Streams;
  readonly #followers = new Map<StreamId, Set<() => void>>();
  /** Commands that are not decided yet. */
  readonly #queue: Pending[] = [];
  /** The batch that is being decided, on the one that is being written. */
  #open = new Batch();
  #writing: Batch | undefined;
  #warming = 0;
  #draining: Promise<void> | undefined;
  /** How many commands the next batch waits for, and what ends that when they are there. */
  #awaited = 0;
  #onGathered: (() => void) | undefined;
  #isClosed = false;
  /** Whether the latest look at a shared log found nothing in memory behind it. */
  #isMemoryCurrent = false;
  /** The signatures that this process has seen in a shared log. Moves with these are looked up, since their append would conflict. */
  readonly #known = new SignatureFilter(0);
  #latest: Millis;

  constructor(options: ForumOptions) {
    this.#options = options;
    this.log = options.log;
    this.todoLists = new TodoLists(options.log, options.limits);
    this.#latest = options.log.lastAt;
    this.#streams = new Streams(options.log, options.stateCacheBytesMax);
    options.log.onGrowth({
      followed: () => this.#followers.keys(),
      wake: (stream) => {
        for (const wake of this.#followers.get(stream) ?? []) wake();
      },
    });
  }

  /** Resolves with the event once it is on disk; rejects with ForumError. A signature in the log returns its first event. */
  submit<C extends Command>(command: C): Promise<EventOf<C>> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw unavailable('the service is shutting down');
      const waiting = this.#queue.length + this.#open.outcomes.length;
      if (waiting + this.#warming >= this.#options.commitQueueMax) {
        throw unavailable('too many moves are waiting to be committed, retry');
      }
      const { did, signature } = command.operation === 'record' ? SERVICE : command.caller;
      const streams: StreamId[] = did === null ? [] : [did];
      if ('chamberId' in command && command.chamberId !== undefined) streams.push(command.chamberId);
      const pending: Pending = {
        command,
        streams,
        signature,
        resolve: (event) => {
          pending.release?.();
          resolve(event as EventOf<C>);
        },
        reject: (error) => {
          pending.release?.();
          reject(error);
        },
        release: undefined,
        needsLook: false,
        conflicts: 0,
        isCounted: false,
      };
      const isDecided = this.log.isShared && this.#queue.length === 0 && this.#decideOnMemory(pending);
      if (!isDecided) this.#queue.push(pending);
      this.#draining ??= this.#drain();
      if (waiting + 1 >= this.#awaited) this.#onGathered?.();
    });
  }

  /** Group commit: batches one after another, each in one transaction. */
  async #drain(): Promise<void> {
    while (this.#queue.length + this.#open.outcomes.length > 0) {
      if (this.log.isShared) await this.#gather();
      // Commands that arrive in this turn of the event loop join the batch, and if there are any, those of the next turn too:
      // under load a commit costs more than a turn, and a single command does not wait.
      else
        for (let turns = 0, before = 0; turns < TURNS_PER_BATCH && before < this.#queue.length; turns++) {
          before = this.#queue.length;
          await nextTick();
        }
      await this.#decideQueued();
      const batch = this.#open;
      this.#open = new Batch();
      this.#awaited = Math.min(batch.outcomes.length, COMMANDS_AWAITED_MAX);
      // Maybe all are being loaded, or could not be looked up.
      if (batch.outcomes.length > 0) await this.#commit(batch);
    }
    this.#draining = undefined;
  }

  /** Resolves when the awaited commands are there, or have not come in time. */
  async #gather(): Promise<void> {
    if (this.#queue.length + this.#open.outcomes.length >= this.#awaited) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS_MAX);
      this.#onGathered = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onGathered = undefined;
  }

  /**
   * Decides a move on a shared log without a look at it: on what is in memory, and on the batch before it, which is not written
   * yet. If that proves not to be the head, or the signature is known, its append finds a conflict. Returns false for other
   * commands, and for a move that would be rejected: only the log can tell whether the memory is old, or the move a retry.
   */
  #decideOnMemory(pending: Pending): boolean {
    const { command, streams, signature } = pending;
    if (pending.needsLook || !this.#isMemoryCurrent || this.#open.outcomes.length >= BATCH_COMMANDS_MAX) return false;
    if (signature !== null && this.#known.mayHold(signature)) return false;
    if (!('chamberId' in command) || command.chamberId === undefined || command.operation === 'record') return false;
    if (this.#open.touched.has(command.caller.did)) return false;
    const { streams: states, heads, outcomes } = this.#open;
    const added = streams.filter((stream) => !states.has(stream));
    for (const stream of added) {
      const staged = this.#writing?.touched.has(stream) ? this.#writing.streams.get(stream) : undefined;
      const state = staged ?? this.#streams.cached(stream);
      if (state === undefined) return false;
      states.set(stream, state);
      heads.set(stream, state.state.lastEventId);
    }
    try {
      outcomes.push({ pending, event: this.#decide(pending) });
      return true;
    } catch {
      // Maybe the look finds later heads.
      for (const stream of added) {
        states.delete(stream);
        heads.delete(stream);
      }
      pending.needsLook = true;
      return false;
    }
  }

  /** Load the streams of the queued commands at their heads, look retries up, decide and stage each. */
  async #decideQueued(): Promise<void> {
    const batch = this.#open;
    let queued: readonly Pending[] = this.#queue.splice(0, BATCH_COMMANDS_MAX - batch.outcomes.length);
    if (this.log.isShared) queued = queued.filter((pending) => !this.#decideOnMemory(pending));
    if (queued.length === 0) return;
    try {
      const { ready, found, lastEventIds } = await this.#load(queued, batch);
      // Commands that wait for their streams are decided later, and answered then.
      queued = ready;
      const postponed: Pending[] = [];
      for (const pending of ready) {
        const { command, signature } = pending;
        const retried = signature === null ? undefined : found.get(signature);
        if (retried !== undefined && signature !== null) this.#known.add(signature);
        // It was decided before it was known to be a retry.
        if (retried !== undefined && pending.isCounted && 'caller' in command) {
          pending.isCounted = false;
          for (const { rate } of this.#ratesOf(command.operation)) rate?.giveBack(command.caller.did);
        }
        if (retried === undefined && this.log.isShared && mustWait(pending, batch, lastEventIds)) {
          postponed.push(pending);
          continue;
        }
        try {
          if (retried instanceof StreamDamaged) throw retried;
          const event = retried === undefined ? this.#decide(pending) : fromLine(retried);
          batch.outcomes.push({ pending, event });
        } catch (error) {
          batch.outcomes.push({ pending, event: null, error });
        }
      }
      this.#queue.unshift(...postponed);
    } catch (error) {
      for (const { reject } of queued) reject(error);
    }
  }

  /** Returns the commands whose streams are in memory at their heads, and the lines that their signatures led to earlier. */
  async #load(queued: readonly Pending[], batch: Batch) {
    const { log } = this;
    const ready: Pending[] = [];
    const wanted = new Set<StreamId>();
    const signatures: string[] = [];
    for (const { streams, signature } of queued) {
      if (log.isShared) for (const stream of streams) wanted.add(stream);
      if (signature !== null) signatures.push(signature);
    }
    let { lastEventIds, lastChamberId, found } = await log.lookUp([...wanted], signatures);
    batch.lastChamberId = lastChamberId;
    if (log.isShared) await this.#catchUp(lastEventIds);
    let isLate = false;
    let eventsLeft = CATCH_UP_EVENTS_MAX;
    for (const pending of queued) {
      try {
        const behind: StreamId[] = [];
        for (const stream of pending.streams) {
          const head = lastEventIds.get(stream);
          if (batch.heads.has(stream) && batch.heads.get(stream) !== head) this.#isMemoryCurrent = false;
          if (head === 0 || batch.streams.has(stream)) continue;
          const state = this.#streams.cached(stream);
          const isAtHead = state !== undefined && (head === undefined || head === state.state.lastEventId);
          if (isAtHead) batch.streams.set(stream, state);
          else behind.push(stream);
        }
        if (behind.length > 0) {
          const lacking = pending.release ? await this.#lacking(behind, lastEventIds) : Number.POSITIVE_INFINITY;
          if (lacking > eventsLeft) {
            // It returns to the queue once its streams are folded, and does not delay the others.
            void this.#warm(pending, behind, lastEventIds);
            continue;
          }
          eventsLeft -= lacking;
        }
        for (const stream of behind) {
          const head = lastEventIds.get(stream);
          const state = await this.#streams.load(stream, { isUrgent: true, head });
          if (state !== undefined && !batch.streams.has(stream)) batch.streams.set(stream, state);
          if (log.isShared && state?.state.lastEventId !== head) isLate = true;
        }
        if (pending.command.operation === 'createChamber') {
          const isFull = await this.#countOpen(pending.command.caller, batch.openChambers);
          if (log.isShared && isFull) isLate = true;
        }
        ready.push(pending);
      } catch (error) {
        pending.reject(error);
      }
    }
    // Neither a state nor a count must hold an event that the look-up of its signature did not see.
    if (isLate) {
      const again = await log.lookUp([], signatures).catch((error: unknown) => {
        for (const { reject } of ready.splice(0)) reject(error);
      });
      if (again !== undefined) ({ found } = again);
    }
    return { ready, found, lastEventIds };
  }

  /** Folds the few events that other processes have just appended to streams in memory, and notes whether memory was current. */
  async #catchUp(heads: LookUp['lastEventIds']): Promise<void> {
    const folds: Promise<unknown>[] = [];
    let eventsLeft = CATCH_UP_EVENTS_MAX;
    this.#isMemoryCurrent = true;
    for (const [stream, head] of heads) {
      const lacking = head - (this.#streams.cached(stream)?.state.lastEventId ?? head);
      if (lacking <= 0) continue;
      this.#isMemoryCurrent = false;
      if (lacking > eventsLeft) continue;
      eventsLeft -= lacking;
      // A stream that can't be read is read again for its commands, which get the error.
      folds.push(this.#streams.load(stream, { isUrgent: true, head }).catch(() => {}));
    }
    if (folds.length > 0) await Promise.race([Promise.all(folds), sleep(CATCH_UP_MS_MAX)]);
  }

  /** Append, publish, answer, wake: no response is sent before the batch is on disk. */
  async #commit(batch: Batch): Promise<void> {
    const { outcomes, entries, registrations, touched } = batch;
    this.#writing = batch;
    const startedAt = performance.now();
    try {
      const isEmpty = entries.length === 0 && registrations.length === 0;
      const conflicts = isEmpty ? NO_STREAMS : await this.log.append(entries, registrations);
      const appendMillis = isEmpty ? 0 : performance.now() - startedAt;
      // In memory these are as before the batch, and are folded on from there.
      for (const stream of conflicts) touched.delete(stream);
      for (const stream of touched) this.#streams.publish(stream, batch.streams.get(stream) as Chamber | Account);
      if (this.log.isShared) for (const signature of batch.accepted.keys()) this.#known.add(signature);
      const waiting = this.#queue.length;
      const final = conflicts.size === 0 ? outcomes : this.#decideAgain(outcomes, conflicts);
      const redecided = this.#queue.length - waiting;
      for (const { pending, event, error } of final) {
        if (error === undefined) pending.resolve(event);
        else pending.reject(error);
      }
      for (const { event } of final) {
        const isArrival = event?.type === 'chamber.created' || event?.type === 'chamber.joined';
        if (isArrival) for (const wake of this.#followers.get(event.did) ?? []) wake();
      }
      for (const stream of [...touched, ALL_CHAMBERS]) {
        for (const wake of this.#followers.get(stream) ?? []) wake();
      }
      const written = conflicts.size === 0 ? entries : entries.filter(({ stream }) => !conflicts.has(stream));
      this.#options.onBatch?.({
        commands: outcomes.length,
        events: written.length,
        conflicts: conflicts.size,
        redecided,
        appendMillis,
      });
    } catch (error) {
      for (const stream of touched) this.#streams.forget(stream);
      this.#takeBack();
      for (const { pending } of outcomes) pending.reject(error);
      if (!(error instanceof ForumError)) this.#options.onFatal(error);
    } finally {
      this.#writing = undefined;
    }
  }

  /** What was decided on a batch that was not written whole returns to the queue. */
  #takeBack(): void {
    const { outcomes } = this.#open;
    this.#open = new Batch();
    this.#queue.unshift(...outcomes.map(({ pending }) => pending));
  }

  /**
   * Nothing of these streams was written: the commands decided on them return to the queue, with everything that was decided
   * since; a relayer's are rejected. Returns the other outcomes.
   */
  #decideAgain(outcomes: readonly Outcome[], conflicts: ReadonlySet<StreamId>): readonly Outcome[] {
    const isCreationLost = outcomes.some(
      ({ event }) => event?.type === 'chamber.created' && conflicts.has(event.chamberId),
    );
    const lost = outcomes.filter(({ pending: { command, streams }, event }) => {
      // Maybe rejected for the number of open chambers, of which the lost one was counted.
      if (event === null && command.operation === 'createChamber' && isCreationLost) return true;
      // A written event stays, even if the account that it was decided on has changed at the same moment.
      const decidedOn = event === null ? streams : [event.chamberId ?? event.did];
      return decidedOn.some((stream) => stream !== null && conflicts.has(stream));
    });
    this.#isMemoryCurrent = false;
    this.#takeBack();
    for (const { pending } of lost.toReversed()) {
      pending.needsLook = true;
      if ('basis' in pending.command) pending.reject(basisPassed());
      else if (++pending.conflicts > CONFLICTS_MAX) pending.reject(unavailable('the chamber is too busy, retry'));
      else this.#queue.unshift(pending);
    }
    return outcomes.filter((outcome) => !lost.includes(outcome));
  }

  /** The event that answers the command, staged; null when it changes nothing. Throws ForumError, with nothing staged. */
  #decide(pending: Pending): ForumEvent | null {
    const { command } = pending;
    const batch = this.#open;
    batch.now = this.now();
    if (command.operation === 'record') return this.#record(command, batch);
    const { did, signature, times } = command.caller;
    for (const { accepted } of [batch, this.#writing ?? batch]) {
      const twin = signature === null ? undefined : accepted.get(signature);
      if (twin !== undefined) return twin;
    }
    // Not for retries: signed requests are public in the log, and replaying them must not use up the agent's rate. Nor for unsigned
    // registrations, which anybody can send.
    const isCounted = pending.isCounted || (command.operation === 'register' && signature === null);
    if (!isCounted) this.#charge(command.operation, did);
    pending.isCounted = true;
    if (NEED_PERMISSION.has(command.operation) && !this.#options.permits(did)) {
      throw new ForumError('FORUM_ERR_FORBIDDEN', `${did} is not allowed here`);
    }
    if (times !== null) {
      requireFresh(times, this.#options.clock(), this.#options.ages);
      // The line's `ts` may be ahead of the wall clock, and auditors compare with `ts`.
      requireFresh(times, batch.now, SIGNATURE_AGES.caps);
    }
    let event: ForumEvent | null;
    if (command.operation === 'createChamber') event = this.#create(command, batch);
    else if (command.operation === 'register') event = this.#register(command, batch);
    else if (command.operation === 'changePersonality') event = this.#changePersonality(command, batch);
    else event = this.#move(command, batch);
    if (signature !== null) batch.accepted.set(signature, event);
    return event;
  }

  #ratesOf(operation: Command['operation']) {
    const { agentRate, accountChangeRate } = this.#options;
    const rates = [{ rate: agentRate, what: 'requests by this agent' }];
    if (CHANGE_ACCOUNT.has(operation)) rates.push({ rate: accountChangeRate, what: 'changes of this account' });
    return rates;
  }

  /** Throws FORUM_ERR_RATE with nothing charged. */
  #charge(operation: Command['operation'], did: string): void {
    const charged: (AgentRate | undefined)[] = [];
    for (const { rate, what } of this.#ratesOf(operation)) {
      const wait = rate?.take(did) ?? 0;
      if (wait > 0) {
        for (const other of charged) other?.giveBack(did);
        throw rateError(wait, what);
      }
      charged.push(rate);
    }
  }

  #move({ operation, chamberId, body, caller }: MoveCommand, batch: Batch): ForumEvent {
    const { streams } = batch;
    const chamber = chamberId === undefined ? undefined : (streams.get(chamberId) as Chamber | undefined);
    if (chamberId === undefined || chamber === undefined) throw chamberNotFound();
    const move: AnyChamberMove = chamberMoves[operation];
    const parsed = parseBody(move, body);
    const { did } = caller;
    const { state: account } = streams.get(did) as Account;
    const now = Math.max(batch.now, account.lastAt);
    const { limits } = this.#options;
    const payload = move.decide(parsed, { state: chamber.state, did, account, now, limits });
    return stage(batch, chamberId, { type: move.event, payload }, { author: caller, account, now });
  }

  #create({ body, caller }: CreateCommand, batch: Batch): ForumEvent {
    const open = batch.openChambers.get(caller.did) ?? 0;
    const { state: account } = batch.streams.get(caller.did) as Account;
    const now = Math.max(batch.now, account.lastAt);
    const context = { now, account, openChambers: open, limits: this.#options.limits };
    const payload = createChamber.decide(parseBody(createChamber, body), context);
    batch.openChambers.set(caller.did, open + 1);
    return stage(batch, ++batch.lastChamberId, { type: createChamber.event, payload }, { author: caller, now });
  }

  #register({ body, caller }: RegisterCommand, batch: Batch): ForumEvent | null {
    const { did, signature } = caller;
    const { state = null } = (batch.streams.get(did) as Account | undefined) ?? {};
    const context = { state, isSigned: signature !== null };
    const parsed = parseRegistration(body, context);
    const registered = registeredDid(parsed);
    if (registered !== did) {
      throw new ForumError('FORUM_ERR_SIGNATURE', `key: the registration of ${registered} is signed by ${did}`);
    }
    const { operatorEmail } = parsed;
    if (state !== null && isUnchanged(parsed, context)) {
      // This signature is remembered too: the request, sent again after a change, must not undo the change.
      const eventId = state.registrationEventId;
      if (signature !== null) batch.registrations.push({ did, eventId, signature, operatorEmail });
      return null;
    }
    const payload = register.decide(parsed, context);
    const event = stageAccount(batch, { type: register.event, payload }, { ...caller, signature: null });
    batch.registrations.push({ did, eventId: event.eventId, signature, operatorEmail });
    return event;
  }

  #changePersonality({ body, caller }: PersonalityCommand, batch: Batch): ForumEvent {
    const patch = parseBody(changePersonality, body);
    const { state } = batch.streams.get(caller.did) as Account;
    const payload = changePersonality.decide(patch, { state });
    return stageAccount(batch, { type: changePersonality.event, payload }, caller);
  }

  #record({ chamberId, fact, basis }: RecordCommand, batch: Batch): ForumEvent {
    const chamber = batch.streams.get(chamberId) as Chamber | undefined;
    if (chamber === undefined) throw chamberNotFound();
    const root = toHex(rootOf(chamber.tree));
    if (basis !== undefined && basis.root !== root) throw basisPassed();
    decideServiceFact(chamber.state, fact, batch.now);
    if (fact.type === 'chamber.committed' && fact.payload.merkleRoot !== root) {
      throw new ServiceFactRejected('chamber.committed has another root than the chamber');
    }
    return stage(batch, chamberId, fact, { author: { ...SERVICE, lease: basis?.lease }, now: batch.now });
  }

  /** Returns whether the agent may create no other chamber. */
  async #countOpen({ did }: Caller, into: Map<string, number>): Promise<boolean> {
    const { openChambersPerDidMax } = this.#options.limits;
    const open = into.get(did) ?? (await this.log.countOpenChambers(did, openChambersPerDidMax));
    into.set(did, open);
    return open >= openChambersPerDidMax;
  }

  /** How many events of the streams are not folded into the states in memory. */
  async #lacking(streams: readonly StreamId[], heads: LookUp['lastEventIds']): Promise<number> {
    let events = 0;
    for (const stream of streams) {
      const head = heads.get(stream) ?? (await this.log.lastEventId(stream));
      events += head - (this.#streams.cached(stream)?.state.lastEventId ?? 0);
    }
    return events;
  }

  async #warm(pending: Pending, cold: readonly StreamId[], heads: LookUp['lastEventIds']): Promise<void> {
    this.#warming++;
    pending.release ??= this.#streams.hold(pending.streams);
    try {
      for (const stream of cold) await this.#streams.load(stream, { head: heads.get(stream) });
      pending.needsLook = true;
      this.#queue.push(pending);
      this.#draining ??= this.#drain();
    } catch (error) {
      pending.reject(error);
    } finally {
      this.#warming--;
    }
  }

  /** Rejects new commands with FORUM_ERR_UNAVAILABLE; resolves when those accepted are on disk and answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#draining !== undefined || this.#warming > 0) await (this.#draining ?? sleep(CLOSE_POLL_MS));
  }

  /** The wall clock, but never below an earlier reading or the newest event. */
  now(): Millis {
    this.#latest = Math.max(this.#latest, this.#options.clock());
    return this.#latest;
  }

  /** Stores the time, so that no phase goes back after a restart with the clock set back. */
  persistClock(): Promise<void> {
    return this.log.persistClock(this.now());
  }

  get ages(): SignatureAges {
    return this.#options.ages;
  }

  wallClock(): Millis {
    return this.#options.clock();
  }

  get catchUps(): number {
    return this.#streams.catchUps;
  }

  /** The estimated size of the states in memory. */
  get cachedBytes(): number {
    return this.#streams.bytes;
  }

  /** At its head; undefined for a chamber that does not exist. */
  chamber(chamberId: number): Promise<Chamber | undefined> {
    return this.#streams.at(chamberId);
  }

  /** The chamber with the id from a path; throws FORUM_ERR_NOT_FOUND. */
  async findChamber(id: string | undefined): Promise<Chamber> {
    const chamberId = parseId(id);
    const chamber = chamberId === undefined ? undefined : await this.chamber(chamberId);
    if (chamber === undefined) throw chamberNotFound();
    return chamber;
  }

  /** At its head; undefined for a key that is not registered. */
  account(did: string): Promise<Account | undefined> {
    return this.#streams.at(did);
  }

  /** The account, maybe behind its head: enough to know that a key is registered, which never changes. */
  async signer(did: string): Promise<Account | undefined> {
    return this.#streams.cached(did) ?? this.#streams.at(did);
  }

  /** Newest first; with `member`, only those that the agent has joined. */
  async chambers({ member, ...query }: ChamberQuery): Promise<readonly ChamberItemView[]> {
    const now = this.now();
    if (member !== undefined) return this.#chambersOf(member, query, now);
    const listings = await this.log.listChambers({ ...query, now });
    return listings.map((listing) => chamberItemView(listing, now));
  }

  async #chambersOf(member: string, { phase, before, limit }: ChamberQuery, now: Millis) {
    const found: ChamberItemView[] = [];
    for (let cursor = before; ; ) {
      const page = await this.log.listChambersOf(member, { before: cursor, limit: MEMBERSHIPS_PER_PAGE });
      const items = page.map((listing) => chamberItemView(listing, now));
      found.push(...items.filter((item) => phase === undefined || item.phase === phase));
      cursor = page.at(-1)?.chamberId;
      if (found.length >= limit || page.length < MEMBERSHIPS_PER_PAGE) return found.slice(0, limit);
      await nextTick();
    }
  }

  /**
   * Calls `wake` after each commit to the chamber (ALL_CHAMBERS: to any) or by the agent; returns a function that stops it.
   * A wake-up carries no data.
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

const NO_STREAMS: ReadonlySet<StreamId> = new Set();

/** Whether a command has to be decided after the batch is written. */
function mustWait(
  { command, streams }: Pending,
  { heads, touched }: Batch,
  lastEventIds: LookUp['lastEventIds'],
): boolean {
  // A state from memory may hold an event that the look-up of the signature did not see.
  if (streams.some((stream) => heads.has(stream) && heads.get(stream) !== lastEventIds.get(stream))) return true;
  // Another process may append to that account first, and an event of another stream would then refer to one that never existed.
  const isChambers = command.operation === 'createChamber' || 'chamberId' in command;
  return isChambers && command.operation !== 'record' && touched.has(command.caller.did);
}

function stage(
  batch: Batch,
  chamberId: number,
  fact: Pick<ChamberEvent, 'type' | 'payload'>,
  by: Circumstances,
): ForumEvent {
  const before = batch.streams.get(chamberId) as Chamber | undefined;
  const { after, event, entry } = stageChamberEvent(before, chamberId, fact, by);
  batch.streams.set(chamberId, after);
  batch.touched.add(chamberId);
  batch.entries.push(entry);
  return event;
}

function stageAccount(batch: Batch, fact: AccountFact, caller: Caller): ForumEvent {
  const before = batch.streams.get(caller.did) as Account | undefined;
  const { after, event, entry } = stageAccountEvent(before, fact, caller, { now: batch.now });
  batch.streams.set(caller.did, after);
  batch.touched.add(caller.did);
  batch.entries.push(entry);
  return event;
}

export function merklePreview({ state, tree }: Chamber): MerklePreview {
  return { root: toHex(rootOf(tree)), eventCount: state.moveCount, asOfEventId: state.moveCount };
}

function unavailable(detail: string): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', detail, { retryAfterSeconds: 1 });
}

function basisPassed(): ForumError {
  return new ForumError('FORUM_ERR_CONFLICT', 'the chamber has grown, or another node acts for it now');
}

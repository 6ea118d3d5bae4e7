// Decides one command against the states in a batch, and stages the event there. The decision is synchronous and does not read the log;
// the append confirms that the states were heads and the signature was new.
import type { AccountState } from '../../projections/account.ts';
import type { ChamberState } from '../../projections/chamber.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import { rootOf } from '../crypto/merkle.ts';
import { changePersonality } from '../moves/change-personality.ts';
import { createChamber } from '../moves/create-chamber.ts';
import { type ChamberLimits, type Move, parseBody } from '../moves/move.ts';
import {
  isUnchanged,
  parseRegistration,
  proofClaim,
  register,
  registeredDid,
  repeatsRegistration,
} from '../moves/register.ts';
import { type AnyChamberMove, chamberMoves } from '../moves/registry.ts';
import { isRetiredBy, keyRetired, retire, retireByWallet, retirementClaim } from '../moves/retire.ts';
import { requireFresh, requireHistory, type SignatureAges } from '../moves/rules.ts';
import { decideServiceFact, ServiceFactRejected } from '../moves/service-facts.ts';
import { type ProofClaim, requireFreshProof, requireProof } from '../moves/wallet-proof.ts';
import { ForumError, invalid, rateError, unavailable } from '../vocabulary/errors.ts';
import type { AccountFact, AccountPayloads, ForumEvent, MovePayloads } from '../vocabulary/events.ts';
import { type Millis, type PinnedKeys, toHex, toTimestamp } from '../vocabulary/values.ts';
import type { CommitBatch, Outcome, PendingCommand } from './batch.ts';
import {
  agentNotFound,
  basisOutdated,
  type Caller,
  type Command,
  type CreateCommand,
  chamberNotFound,
  type MoveCommand,
  type PersonalityCommand,
  type RecordCommand,
  type RegisterCommand,
  type RetireByWalletCommand,
  type RetireCommand,
} from './commands.ts';
import { CLOCK_STEP_MS_MAX, type ClockProblem, type ServiceClock } from './service-clock.ts';
import { type Account, type Chamber, stageAccountEvent, stageChamberEvent } from './staging.ts';

/** Limits an agent's rate of commands. */
export interface AgentRate {
  /** Charges one command and returns 0, or returns how long the agent must wait. */
  take(did: string): Millis;
  /** Refunds a command that is found to be a retry. */
  refund(did: string): void;
}

export interface DecisionOptions {
  readonly limits: ChamberLimits;
  readonly ages: SignatureAges;
  /** Charged for each command of an agent except retries. Without it agents are not limited. */
  readonly agentRate?: AgentRate;
  /** Additional charge for commands that may change the agent's account. */
  readonly accountChangeRate?: AgentRate;
  /** Whether an agent may register, create chambers and join them. */
  readonly permits: (did: string) => boolean;
  /** The thumbprints of the service's keys, to be recorded in the first line of a chamber. */
  readonly pinnedKeys?: (now: Millis) => PinnedKeys;
}

/** Operations that a banned agent can't use. It may still finish its chambers. */
const PERMISSION_REQUIRED: ReadonlySet<Command['operation']> = new Set(['register', 'createChamber', 'join']);

/** Anyone can send these unsigned, so they must not use up the rate of the agent that they name. */
const UNSIGNED: ReadonlySet<Command['operation']> = new Set(['register', 'retireByWallet']);

interface ChargedRate {
  readonly rate: AgentRate | undefined;
  readonly what: string;
}

export class Decisions {
  readonly #options: DecisionOptions;
  /** Operations that are not in this map are charged to `#rates`. */
  readonly #ratesOf: ReadonlyMap<Command['operation'], readonly ChargedRate[]>;
  readonly #rates: readonly ChargedRate[];

  constructor(options: DecisionOptions) {
    this.#options = options;
    this.#rates = [{ rate: options.agentRate, what: 'requests by this agent' }];
    const accountRates = [...this.#rates, { rate: options.accountChangeRate, what: 'changes of this account' }];
    // Each of these adds a long line to an account. Only signed registrations are charged.
    this.#ratesOf = new Map([
      ['register', accountRates],
      ['changePersonality', accountRates],
    ]);
  }

  /**
   * Returns the staged event, null if the command changes nothing, or the error that rejects it (a ForumError, unless there is a bug).
   * NeedsChain is not a response: the chain must be read first.
   */
  decide(pending: PendingCommand, batch: CommitBatch, clock: ServiceClock): Outcome {
    const { command } = pending;
    const now = clock.now();
    const context = { pending, batch, now, at: timestampOf(pending, batch, now) };
    try {
      requireCertainTime(context, clock.problem());
      if (command.operation === 'record') return { pending, event: recordFact(command, context) };
      this.#requireAllowed(command, context);
      let event: ForumEvent | null;
      if (command.operation === 'createChamber') event = this.#create(command, context);
      else if (command.operation === 'register') event = this.#register(command, context);
      else if (command.operation === 'changePersonality') event = changeAccount(changePersonality, command, context);
      else if (command.operation === 'retire') event = changeAccount(retire, command, context);
      else if (command.operation === 'retireByWallet') event = this.#retireByWallet(command, context);
      else event = this.#decideMove(command, context);
      if (pending.signature !== null) batch.accepted.set(pending.signature, event);
      return { pending, event };
    } catch (error) {
      return { pending, event: null, error };
    }
  }

  /**
   * Checks the conditions that do not depend on a chamber, and charges the agent's rate. Retries are not charged, because signed requests are
   * public in the log and replays must not use up the rate. Unsigned registrations are not charged either.
   */
  #requireAllowed(command: AgentCommand, { pending, batch, now, at }: Context): void {
    const { operation, caller } = command;
    const { did, signature, times } = caller;
    if (!pending.isCharged && !(signature === null && UNSIGNED.has(operation))) {
      const rates = this.#ratesOf.get(operation) ?? this.#rates;
      for (const [index, { rate, what }] of rates.entries()) {
        const wait = rate?.take(did) ?? 0;
        if (wait === 0) continue;
        for (const charged of rates.slice(0, index)) charged.rate?.refund(did);
        throw rateError(wait, what);
      }
      pending.isCharged = true;
    }
    if (PERMISSION_REQUIRED.has(operation) && !this.#options.permits(did)) {
      throw new ForumError(
        'FORUM_ERR_FORBIDDEN',
        `${did} is not allowed here: the operator of the service decides who may register, create and join`,
      );
    }
    const state = (batch.states.get(did) as Account | null | undefined)?.state;
    if (state && state.retirement !== null && !mayBeRetired(command, state)) throw keyRetired(did, state.retirement);
    if (times === null) return;
    requireFresh(times, now, this.#options.ages);
    requireFresh(times, at, this.#options.ages);
  }

  /** Refunds a command that is found to be a retry. */
  refund(pending: PendingCommand): void {
    const { command } = pending;
    if (!pending.isCharged || command.operation === 'record') return;
    pending.isCharged = false;
    const rates = this.#ratesOf.get(command.operation) ?? this.#rates;
    for (const { rate } of rates) rate?.refund(command.caller.did);
  }

  #decideMove({ operation, chamberId, body, caller }: MoveCommand, { pending, batch, at }: Context): ForumEvent {
    const chamber = chamberId === undefined ? undefined : (batch.states.get(chamberId) as Chamber | null);
    if (chamberId === undefined || !chamber) throw chamberNotFound();
    const move: AnyChamberMove = chamberMoves[operation];
    requireForm(caller);
    const parsed = parseBody(move, body);
    const { state: account } = batch.states.get(caller.did) as Account;
    const { state, headHash } = chamber;
    const { seen } = parsed;
    const { seenLeaf = null, takesReply = false, readChain } = pending.readings;
    const leaf = seen?.eventId === state.lastEventId ? headHash : seenLeaf;
    let payload: MovePayloads[keyof MovePayloads];
    try {
      const { limits } = this.#options;
      const takesReplies = () => takesReply;
      payload = move.decide(parsed, { state, did: caller.did, account, now: at, limits, readChain, takesReplies });
    } catch (error) {
      // The agent's history is checked after all other rules, but before conflicts are reported and before the chain is read.
      if (!(error instanceof ForumError) || error.code === 'FORUM_ERR_CONFLICT') requireHistory(seen, leaf);
      throw error;
    }
    requireHistory(seen, leaf);
    const fact = { type: move.event, payload };
    return batch.stage(stageChamberEvent(chamber, chamberId, fact, { author: caller, account, at }));
  }

  #create({ body, caller }: CreateCommand, { pending, batch, at }: Context): ForumEvent {
    const { limits, pinnedKeys } = this.#options;
    const { state: account } = batch.states.get(caller.did) as Account;
    requireForm(caller);
    const payload = createChamber.decide(parseBody(createChamber, body), {
      now: at,
      account,
      openChambers: pending.readings.openChambers?.count ?? 0,
      serviceKeys: pinnedKeys?.(at),
      limits,
      readChain: pending.readings.readChain,
    });
    const chamberId = (batch.lastChamberId ?? 0) + 1;
    batch.lastChamberId = chamberId;
    const fact = { type: createChamber.event, payload };
    return batch.stage(stageChamberEvent(undefined, chamberId, fact, { author: caller, account, at }));
  }

  #register({ body, caller, services }: RegisterCommand, context: Context): ForumEvent | null {
    const { pending, batch, now, at } = context;
    const { did, signature } = caller;
    const account = (batch.states.get(did) ?? undefined) as Account | undefined;
    const { state = null } = account ?? {};
    const { readChain } = pending.readings;
    requireForm(caller);
    const given = { state, isSigned: signature !== null, services, readChain };
    const parsed = parseRegistration(body, given);
    const registered = registeredDid(parsed);
    if (registered !== did) {
      const serviceTime = toTimestamp(now);
      const problem = `key: the registration of ${registered} is signed by ${did} (service time ${serviceTime})`;
      throw new ForumError('FORUM_ERR_SIGNATURE', problem, { step: 'key', serviceTime });
    }
    const { operatorEmail } = parsed;
    const claim = proofClaim(parsed, services);
    if (claim !== undefined) this.#requireFreshProof(claim, context);
    if (state !== null && isUnchanged(parsed, given)) {
      if (claim !== undefined) requireProof(claim, readChain);
      // The signature is recorded, so that a replay of this request after a later change does not undo the change.
      const eventId = state.registrationEventId;
      const unchangedAt = batch.touched.has(did) ? undefined : state.lastEventId;
      if (signature !== null) batch.registrations.push({ did, eventId, signature, operatorEmail, unchangedAt });
      return null;
    }
    const fact = { type: register.event, payload: register.decide(parsed, given) };
    const event = batch.stage(stageAccountEvent(account, fact, { ...caller, signature: null }, { at }));
    batch.registrations.push({ did, eventId: event.eventId, signature, operatorEmail });
    return event;
  }

  #retireByWallet({ body, caller, services }: RetireByWalletCommand, context: Context): ForumEvent | null {
    const { pending, batch, at } = context;
    const account = batch.states.get(caller.did) as Account | null;
    if (!account) throw agentNotFound();
    const { state } = account;
    const sent = parseBody(retireByWallet, body);
    if (isRetiredBy(state, sent)) return null;
    if (state.retirement === null) this.#requireFreshProof(retirementClaim(sent, caller.did, services), context);
    const payload = retireByWallet.decide(sent, { state, services, readChain: pending.readings.readChain });
    return batch.stage(stageAccountEvent(account, { type: retireByWallet.event, payload }, caller, { at }));
  }

  #requireFreshProof(claim: ProofClaim, { now, at }: Context): void {
    requireFreshProof(claim, now, this.#options.ages);
    requireFreshProof(claim, at, this.#options.ages);
  }
}

/** Throws FORUM_ERR_VALIDATION. */
function requireForm({ formProblem }: Caller): void {
  if (formProblem !== undefined) throw invalid(formProblem);
}

/** If a clock was wrong and the head of a stream is in the future, this stream must wait. Other streams are unaffected. */
function requireCertainTime({ pending, batch, now, at }: Context, problem: ClockProblem | undefined): void {
  if (problem !== undefined) throw unavailable(problem.reason);
  if (at - now <= CLOCK_STEP_MS_MAX) return;
  const stream = pending.streams.find((each) => batch.states.get(each)?.state.lastAt === at);
  const named = typeof stream === 'number' ? `chamber ${stream}` : `the account of ${stream}`;
  throw unavailable(
    `the last event of ${named} is in the future: no other event is accepted before ${toTimestamp(at)}`,
  );
}

type AgentCommand = Exclude<Command, RecordCommand>;

interface Context {
  readonly pending: PendingCommand;
  readonly batch: CommitBatch;
  /** The service's time. A signature must be fresh both by this time and by `at`. */
  readonly now: Millis;
  /** The event's `ts`. All rules use this time, and so do auditors. */
  readonly at: Millis;
}

/** Never earlier than the heads that the event follows or names, because the clocks of other nodes may be ahead. */
function timestampOf({ streams }: PendingCommand, { states }: CommitBatch, now: Millis): Millis {
  return Math.max(now, ...streams.map((stream) => states.get(stream)?.state.lastAt ?? 0));
}

/** Repeated retirements have a separate rule, and an unsigned registration that changes nothing is a retry. */
function mayBeRetired({ operation, body, caller }: AgentCommand, state: AccountState): boolean {
  if (operation === 'retire' || operation === 'retireByWallet') return true;
  return operation === 'register' && caller.signature === null && repeatsRegistration(body, state);
}

function changeAccount<Type extends keyof AccountPayloads, Body>(
  move: Move<Type, Body, { readonly state: AccountState }>,
  { body, caller }: PersonalityCommand | RetireCommand,
  { batch, at }: Context,
): ForumEvent {
  const account = batch.states.get(caller.did) as Account;
  requireForm(caller);
  const fact = { type: move.event, payload: move.decide(parseBody(move, body), account) } as AccountFact;
  return batch.stage(stageAccountEvent(account, fact, caller, { at }));
}

function recordFact({ chamberId, fact, basis }: RecordCommand, { batch, at }: Context): ForumEvent {
  const chamber = batch.states.get(chamberId) as Chamber | null;
  if (!chamber) throw chamberNotFound();
  const root = toHex(rootOf(chamber.tree));
  if (basis !== undefined && basis.root !== root) throw basisOutdated();
  decideServiceFact(chamber.state, fact, at);
  // The relayer read the idea before its text was withheld, and will read it again.
  if (fact.type === 'relay.deploy_submitted' && isWithheld(chamber.state, fact.payload.ideaId)) throw basisOutdated();
  if (fact.type === 'chamber.committed' && fact.payload.merkleRoot !== root) {
    throw new ServiceFactRejected('chamber.committed has a different root than the chamber');
  }
  const author = { did: null, request: null, signature: null, lease: basis?.lease };
  return batch.stage(stageChamberEvent(chamber, chamberId, fact, { author, at }));
}

/** Whether a text of the idea is withheld and the log has no deployment transaction that the relayer must complete. */
function isWithheld({ ideas, settlement }: ChamberState, ideaId: string): boolean {
  const idea = ideas.find((each) => each.ideaId === ideaId);
  return idea !== undefined && idea.withheldTexts.length > 0 && deploymentOf(settlement, ideaId).submitted.length === 0;
}

// Decides one command on the states in a batch, and stages the event there. Synchronous and without a look at the log: whether the
// states were heads, and whether the signature was new, is for the append to say.
import type { AccountState } from '../../projections/account.ts';
import { rootOf } from '../crypto/merkle.ts';
import type { ReadChain } from '../moves/chain-question.ts';
import { changePersonality } from '../moves/change-personality.ts';
import { createChamber } from '../moves/create-chamber.ts';
import { type ChamberLimits, decidePayload, parseBody } from '../moves/move.ts';
import {
  isUnchanged,
  parseRegistration,
  proofClaim,
  register,
  registeredDid,
  repeatsRegistration,
} from '../moves/register.ts';
import { type AnyChamberMove, chamberMoves } from '../moves/registry.ts';
import { isRetiredBy, requireActive, retire, retireByWallet, retirementClaim } from '../moves/retire.ts';
import { requireFresh, type SignatureAges } from '../moves/rules.ts';
import { decideAfterHistory } from '../moves/seen.ts';
import { decideServiceFact, ServiceFactRejected } from '../moves/service-facts.ts';
import { type ProofTime, requireFreshProof, requireProof } from '../moves/wallet-proof.ts';
import { ForumError, rateError } from '../vocabulary/errors.ts';
import type { ForumEvent } from '../vocabulary/events.ts';
import { type Millis, type PinnedKeys, SIGNATURE_AGES, toHex, toTimestamp } from '../vocabulary/values.ts';
import type { CommitBatch, Outcome, PendingCommand } from './batch.ts';
import { readChainFor } from './chain-readings.ts';
import {
  agentNotFound,
  basisPassed,
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
import { type Account, type Author, type Chamber, stageAccountEvent, stageChamberEvent } from './staging.ts';

/** Limits how often an agent may command. */
export interface AgentRate {
  /** Takes one command from the agent's allowance and returns 0, or returns how long the agent must wait. */
  take(did: string): Millis;
  /** Gives back the charge of a command that proved to be a retry. */
  giveBack(did: string): void;
}

export interface DecisionOptions {
  readonly limits: ChamberLimits;
  readonly ages: SignatureAges;
  /** Charged for each command of an agent that is no retry; without it agents are not limited. */
  readonly agentRate?: AgentRate;
  /** Charged too for each of them that may change the agent's account. */
  readonly accountChangeRate?: AgentRate;
  /** Whether an agent may register, create a chamber or join one. */
  readonly permits: (did: string) => boolean;
  /** The thumbprints of the service's keys, which the first line of a chamber records. */
  readonly pinnedKeys?: (now: Millis) => PinnedKeys;
  /** The wall clock in milliseconds; tests move it by hand. */
  readonly clock: () => Millis;
}

/** The operations that a ban prevents. A banned member may finish its chambers. */
const NEED_PERMISSION: ReadonlySet<Command['operation']> = new Set(['register', 'createChamber', 'join']);

/** Any client may send these: they must not use up the rate of the agent that they are about. */
const UNSIGNED: ReadonlySet<Command['operation']> = new Set(['register', 'retireByWallet']);

const SERVICE: Author = { did: null, request: null, signature: null };

interface ChargedRate {
  readonly rate: AgentRate | undefined;
  readonly what: string;
}

export class Decisions {
  readonly #options: DecisionOptions;
  /** The rates of each operation; an operation that is not listed is charged `#rates`. */
  readonly #ratesOf: ReadonlyMap<Command['operation'], readonly ChargedRate[]>;
  readonly #rates: readonly ChargedRate[];

  constructor(options: DecisionOptions) {
    this.#options = options;
    this.#rates = [{ rate: options.agentRate, what: 'requests by this agent' }];
    const accountRates = [...this.#rates, { rate: options.accountChangeRate, what: 'changes of this account' }];
    // Each adds a long line to an account; a registration counts if it is signed.
    this.#ratesOf = new Map([
      ['register', accountRates],
      ['changePersonality', accountRates],
    ]);
  }

  /**
   * The event of the command's response, staged, or none when it changes nothing; or the error that rejects it, a ForumError unless the
   * service has a defect, with nothing staged. NeedsChain is no response: the chain has to be asked first.
   */
  decide(pending: PendingCommand, batch: CommitBatch, now: Millis): Outcome {
    const { command } = pending;
    const { limits, pinnedKeys } = this.#options;
    try {
      if (command.operation === 'record') return { pending, event: recordFact(command, batch, now) };
      this.#requireAllowed(pending, command, { batch, now });
      const readChain = readChainFor(pending);
      let event: ForumEvent | null;
      if (command.operation === 'createChamber') {
        const openChambers = pending.openChambers?.count ?? 0;
        event = create(command, batch, { openChambers, serviceKeys: pinnedKeys?.(now), limits, now, readChain });
      } else if (command.operation === 'register')
        event = registerAgent(command, batch, { ...this.#proofTime(now), readChain });
      else if (command.operation === 'changePersonality') event = changeAgent(command, batch, now);
      else if (command.operation === 'retire') event = retireAgent(command, batch, now);
      else if (command.operation === 'retireByWallet')
        event = retireAgentByWallet(command, batch, { ...this.#proofTime(now), readChain });
      else event = decideMove(command, batch, { limits, now, readChain, pending });
      if (pending.signature !== null) batch.accepted.set(pending.signature, event);
      return { pending, event };
    } catch (error) {
      return { pending, event: null, error };
    }
  }

  /** A wallet's proof is as old as the wall clock says, and auditors compare it with `ts`. */
  #proofTime(now: Millis): Omit<ProofContext, 'readChain'> {
    return {
      now,
      times: [
        { clock: this.#options.clock(), ages: this.#options.ages },
        { clock: now, ages: SIGNATURE_AGES.caps },
      ],
    };
  }

  /**
   * What does not depend on any chamber. Retries are not charged: signed requests are public in the log, and replaying them must not use up
   * the agent's rate. Nor are unsigned registrations, which any client can send.
   */
  #requireAllowed(
    pending: PendingCommand,
    command: AgentCommand,
    { batch, now }: { readonly batch: CommitBatch; readonly now: Millis },
  ): void {
    const { operation, caller } = command;
    const { did, signature, times } = caller;
    if (!pending.isCounted && !(signature === null && UNSIGNED.has(operation))) {
      const rates = this.#ratesOf.get(operation) ?? this.#rates;
      for (const [index, { rate, what }] of rates.entries()) {
        const wait = rate?.take(did) ?? 0;
        if (wait === 0) continue;
        for (const charged of rates.slice(0, index)) charged.rate?.giveBack(did);
        throw rateError(wait, what);
      }
      pending.isCounted = true;
    }
    if (NEED_PERMISSION.has(operation) && !this.#options.permits(did)) {
      throw new ForumError(
        'FORUM_ERR_FORBIDDEN',
        `${did} is not allowed here: the operator of the service decides who may register, create and join`,
      );
    }
    const account = (batch.states.get(did) ?? undefined) as Account | undefined;
    if (account !== undefined) requireActiveFor(command, account.state);
    if (times === null) return;
    requireFresh(times, this.#options.clock(), this.#options.ages);
    // The line's `ts` may be ahead of the wall clock, and auditors compare with `ts`.
    requireFresh(times, now, SIGNATURE_AGES.caps);
  }

  /** Gives back the charge of a command that proved to be a retry. */
  giveBack(pending: PendingCommand): void {
    const { command } = pending;
    if (!pending.isCounted || command.operation === 'record') return;
    pending.isCounted = false;
    const rates = this.#ratesOf.get(command.operation) ?? this.#rates;
    for (const { rate } of rates) rate?.giveBack(command.caller.did);
  }
}

type AgentCommand = Exclude<Command, RecordCommand>;

interface ProofContext {
  readonly now: Millis;
  readonly times: readonly ProofTime[];
  readonly readChain: ReadChain;
}

/** A retirement that is sent again has a rule of its own; an unsigned registration that changes nothing is a retry. */
function requireActiveFor(command: AgentCommand, state: AccountState): void {
  const { operation, body, caller } = command;
  if (operation === 'retire' || operation === 'retireByWallet') return;
  if (operation === 'register' && caller.signature === null && repeatsRegistration(body, state)) return;
  requireActive(state);
}

interface MoveContext {
  readonly limits: ChamberLimits;
  readonly now: Millis;
  readonly readChain: ReadChain;
}

function decideMove(
  { operation, chamberId, body, caller }: MoveCommand,
  batch: CommitBatch,
  {
    limits,
    now: decidedAt,
    readChain,
    pending: { seen, seenLeaf = null },
  }: MoveContext & { readonly pending: PendingCommand },
): ForumEvent {
  const chamber = chamberId === undefined ? undefined : (batch.states.get(chamberId) as Chamber | null);
  if (chamberId === undefined || !chamber) throw chamberNotFound();
  const move: AnyChamberMove = chamberMoves[operation];
  const parsed = parseBody(move, body);
  const { state: account } = batch.states.get(caller.did) as Account;
  const now = Math.max(decidedAt, account.lastAt);
  const { state, headHash } = chamber;
  const context = { state, did: caller.did, account, now, limits, readChain };
  const leaf = seen?.eventId === state.lastEventId ? headHash : seenLeaf;
  const payload = decideAfterHistory(() => decidePayload(move, parsed, context), seen, leaf);
  const fact = { type: move.event, payload };
  return batch.stage(chamberId, stageChamberEvent(chamber, chamberId, fact, { author: caller, account, now }));
}

interface CreateContext extends MoveContext {
  readonly openChambers: number;
  readonly serviceKeys: PinnedKeys | undefined;
}

function create(
  { body, caller }: CreateCommand,
  batch: CommitBatch,
  { now: decidedAt, ...context }: CreateContext,
): ForumEvent {
  const { state: account } = batch.states.get(caller.did) as Account;
  const now = Math.max(decidedAt, account.lastAt);
  const payload = decidePayload(createChamber, parseBody(createChamber, body), { ...context, now, account });
  const chamberId = (batch.lastChamberId ?? 0) + 1;
  batch.lastChamberId = chamberId;
  const fact = { type: createChamber.event, payload };
  return batch.stage(chamberId, stageChamberEvent(undefined, chamberId, fact, { author: caller, account, now }));
}

function registerAgent(
  { body, caller, services }: RegisterCommand,
  batch: CommitBatch,
  { now, times, readChain }: ProofContext,
): ForumEvent | null {
  const { did, signature } = caller;
  const account = (batch.states.get(did) ?? undefined) as Account | undefined;
  const { state = null } = account ?? {};
  const context = { state, isSigned: signature !== null, services, readChain };
  const parsed = parseRegistration(body, context);
  const registered = registeredDid(parsed);
  if (registered !== did) {
    const serviceTime = toTimestamp(now);
    const problem = `key: the registration of ${registered} is signed by ${did} (service time ${serviceTime})`;
    throw new ForumError('FORUM_ERR_SIGNATURE', problem, { step: 'key', serviceTime });
  }
  const { operatorEmail } = parsed;
  const claim = proofClaim(parsed, services);
  if (claim !== undefined) for (const time of times) requireFreshProof(claim, time);
  if (state !== null && isUnchanged(parsed, context)) {
    if (claim !== undefined) requireProof(claim, readChain);
    // This signature is remembered too: the request, sent again after a change, must not undo the change.
    const eventId = state.registrationEventId;
    const unchangedAt = batch.touched.has(did) ? undefined : state.lastEventId;
    if (signature !== null) batch.registrations.push({ did, eventId, signature, operatorEmail, unchangedAt });
    return null;
  }
  const fact = { type: register.event, payload: register.decide(parsed, context) };
  const event = batch.stage(did, stageAccountEvent(account, fact, { ...caller, signature: null }, { now }));
  batch.registrations.push({ did, eventId: event.eventId, signature, operatorEmail });
  return event;
}

function changeAgent({ body, caller }: PersonalityCommand, batch: CommitBatch, now: Millis): ForumEvent {
  const patch = parseBody(changePersonality, body);
  const account = batch.states.get(caller.did) as Account;
  const fact = { type: changePersonality.event, payload: changePersonality.decide(patch, account) };
  return batch.stage(caller.did, stageAccountEvent(account, fact, caller, { now }));
}

function retireAgent({ body, caller }: RetireCommand, batch: CommitBatch, now: Millis): ForumEvent {
  const account = batch.states.get(caller.did) as Account;
  const fact = { type: retire.event, payload: retire.decide(parseBody(retire, body), account) };
  return batch.stage(caller.did, stageAccountEvent(account, fact, caller, { now }));
}

function retireAgentByWallet(
  { body, caller, services }: RetireByWalletCommand,
  batch: CommitBatch,
  { now, times, readChain }: ProofContext,
): ForumEvent | null {
  const account = batch.states.get(caller.did) as Account | null;
  if (!account) throw agentNotFound();
  const sent = parseBody(retireByWallet, body);
  if (isRetiredBy(account.state, sent)) return null;
  if (account.state.retirement === null) {
    const claim = retirementClaim(sent, caller.did, services);
    for (const time of times) requireFreshProof(claim, time);
  }
  const payload = retireByWallet.decide(sent, { state: account.state, services, readChain });
  return batch.stage(caller.did, stageAccountEvent(account, { type: retireByWallet.event, payload }, caller, { now }));
}

function recordFact({ chamberId, fact, basis }: RecordCommand, batch: CommitBatch, now: Millis): ForumEvent {
  const chamber = batch.states.get(chamberId) as Chamber | null;
  if (!chamber) throw chamberNotFound();
  const root = toHex(rootOf(chamber.tree));
  if (basis !== undefined && basis.root !== root) throw basisPassed();
  decideServiceFact(chamber.state, fact, now);
  if (fact.type === 'chamber.committed' && fact.payload.merkleRoot !== root) {
    throw new ServiceFactRejected('chamber.committed has another root than the chamber');
  }
  const author = { ...SERVICE, lease: basis?.lease };
  return batch.stage(chamberId, stageChamberEvent(chamber, chamberId, fact, { author, now }));
}

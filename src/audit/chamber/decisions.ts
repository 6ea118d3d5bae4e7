// Decides every move again from its signed request, with the service's own pure functions, and compares the recorded payload with
// the result. The state is folded from these decisions.
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { deploymentOf, type Settlement } from '../../../projections/settlement.ts';
import type { ReadChain } from '../../moves/chain-question.ts';
import { type CreationContext, createChamber } from '../../moves/create-chamber.ts';
import { type DecisionContext, type Move, NO_LIMITS, parseBody } from '../../moves/move.ts';
import { moveOfEvent, takesReplies } from '../../moves/registry.ts';
import { READ_LIMITS } from '../../reading/limits.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import {
  type ChamberEvent,
  isMove,
  type MoveEvent,
  type MovePayloads,
  type ServiceEvent,
} from '../../vocabulary/events.ts';
import { canonicalJson, parseJson } from '../../vocabulary/json.ts';
import type { RecordedTransaction } from '../../vocabulary/service-payloads.ts';
import { withoutTexts } from '../../vocabulary/texts.ts';
import { instantOf } from '../../vocabulary/values.ts';
import type { Withheld } from '../../vocabulary/withheld.ts';
import { recordedIn, walletIn } from '../account/references.ts';
import { differences, type Findings, LOSS_CHECKS } from '../report/findings.ts';
import { EventIds } from './event-ids.ts';

/** The context of every move; only a creation is decided without a state. */
type Context = Omit<DecisionContext, 'state'> & CreationContext & { readonly state: ChamberState | null };

const sliceOfEvent: Readonly<Record<keyof MovePayloads, Move<keyof MovePayloads, unknown, Context>>> = moveOfEvent;

/** The source of an altered move's effect. */
export type Effect = 'request' | 'payload' | 'unknown';

export class Decisions {
  /** null before `chamber.created`. */
  state: ChamberState | null = null;
  /** The state as served, without texts that only the originals of stubs contain. */
  served: ChamberState | null = null;
  /** The first missing or unreadable event. Its effect is unknown, so later events can't be decided. */
  lostEventId: number | undefined;
  /** Whether all moves were read, so that their root can be judged. */
  isTreeKnown = true;
  #rejectedEventId: number | undefined;
  /** The events that accept replies, known until an event is lost. */
  readonly #repliedTo = new EventIds();
  readonly #findings: Findings;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Call if the event's bytes were altered: if the event was rejected, its true effect is lost. */
  distrust(eventId: number): void {
    if (this.#rejectedEventId === eventId) this.lostEventId ??= eventId;
  }

  /** `withheld` comes from the event's stub, even if the event itself is the original. */
  check(event: MoveEvent, eventId: number, withheld?: Withheld): void {
    if (this.lostEventId !== undefined) {
      this.#checkContent(event, eventId);
      return;
    }
    this.#checkDecision(event, eventId, withheld);
    if (takesReplies(event)) this.#repliedTo.add(eventId);
  }

  /** Derives the effect of an altered move from its request or its payload. */
  assume(event: MoveEvent, effect: Effect, withheld?: Withheld): void {
    // The event accepts replies whatever its type, because the type may be the altered part.
    if (this.lostEventId === undefined) this.#repliedTo.add(event.eventId);
    for (const bodyOf of SOURCES[effect]) {
      const payload = attempt(() => this.#decide(event, bodyOf(event)));
      if (payload instanceof ForumError) continue;
      this.#take({ ...event, payload } as MoveEvent, withheld);
      return;
    }
    this.lostEventId ??= event.eventId;
  }

  /** Service events record facts of the chain, so they are folded without a decision. */
  fold(event: ServiceEvent, withheld?: Withheld): void {
    if (this.state !== null) this.#take(event, withheld);
  }

  /** `state` and `served` are the same object until the first original is taken. */
  #take(event: ChamberEvent, withheld: Withheld | undefined): void {
    const { state, served } = this;
    const isOriginal = withheld !== undefined && event.withheld === undefined;
    const whole = isOriginal ? { ...event, withheld } : event;
    this.state = evolved(state, whole);
    if (served === state && !isOriginal) this.served = this.state;
    else {
      const payload = isOriginal ? withoutTexts(event.type, event.payload) : event.payload;
      this.served = evolved(served, { ...whole, payload } as ChamberEvent);
    }
  }

  #checkDecision(event: MoveEvent, eventId: number, withheld: Withheld | undefined): void {
    const decided = attempt(() => this.#decide(event, requestedBody(event)));
    if (decided instanceof ForumError) {
      const problem = `event ${eventId} (${event.type}) breaks a rule: ${decided.code}: ${decided.message}`;
      this.#findings.judge('rules', [eventId], problem);
      this.#rejectedEventId = eventId;
    } else {
      this.#findings.judge('rules', [eventId]);
      const differing = differences(decided, event.payload, true);
      const problem = `event ${eventId} (${event.type}) does not match its request: ${differing.join(', ')}`;
      this.#findings.judge('payload', [eventId], differing.length > 0 && problem);
    }
    // A rejected move has no effect, unless its payload alone would be allowed: then only its evidence was altered.
    const isRejected = decided instanceof ForumError;
    const payload = isRejected ? attempt(() => this.#decide(event, impliedBody(event))) : decided;
    if (payload instanceof ForumError) return;
    // The payload belongs to the event's type, which a spread over a union can't express.
    this.#take({ ...event, payload } as MoveEvent, withheld);
  }

  #decide(event: MoveEvent, body: unknown): MoveEvent['payload'] {
    return decide(event, body, { state: this.state, takesReplies: (eventId) => this.#repliedTo.has(eventId) });
  }

  /** Compares only the payload with the request, because the state is unknown. */
  #checkContent(event: MoveEvent, eventId: number): void {
    const why = `event ${this.lostEventId} is lost, and later moves depend on it`;
    this.#findings.notEvaluated({ follows: LOSS_CHECKS, why }, 'rules');
    const [requested, implied] = [requestedBody, impliedBody].map((bodyOf) => {
      const body = attempt(() => bodyOf(event));
      return canonicalJson(body instanceof ForumError ? body.message : body);
    });
    const problem = `event ${eventId} (${event.type}) does not match its request`;
    this.#findings.judge('payload', [eventId], requested !== implied && problem);
  }
}

const SOURCES: Readonly<Record<Effect, readonly ((event: MoveEvent) => unknown)[]>> = {
  request: [requestedBody, impliedBody],
  payload: [impliedBody, requestedBody],
  unknown: [],
};

/** Parses the body of the signed request; for an unsigned move, the body that its payload implies. */
function requestedBody(event: MoveEvent): unknown {
  const text = event.request?.body;
  if (text === undefined || text === null) return impliedBody(event);
  return parseBody(sliceOfEvent[event.type], {
    json: text === '' ? undefined : parseJson(text, READ_LIMITS.jsonValuesMax),
  });
}

function impliedBody(event: MoveEvent): unknown {
  const slice = sliceOfEvent[event.type];
  return parseBody(slice, { json: slice.impliedBody(event.payload) });
}

function decide(
  event: MoveEvent,
  body: unknown,
  { state, takesReplies }: Pick<Context, 'state' | 'takesReplies'>,
): MoveEvent['payload'] {
  const { did, payload } = event;
  const isCreation = event.type === createChamber.event;
  if (isCreation && state !== null)
    throw new ForumError('FORUM_ERR_CONFLICT', `chamber ${state.chamberId} already exists`);
  if (!isCreation && state === null) throw new ForumError('FORUM_ERR_NOT_FOUND', 'the chamber was not created');
  // The account is assumed to be as recorded; the check `registration` compares it with the account's own lines.
  const recorded = recordedIn(event);
  const { walletProven, label = null } = recorded;
  const account = { walletAddress: walletIn(recorded) ?? '', walletProven, label, lastEventId: payload.accountEventId };
  const serviceKeys = 'serviceKeys' in payload ? payload.serviceKeys : undefined;
  const now = instantOf(event.ts);
  const readChain = recordedReading(event);
  const known = { state, takesReplies, limits: NO_LIMITS, openChambers: 0, readChain };
  const isStub = event.withheld !== undefined;
  const context: Context = { did, account, serviceKeys, now, isStub, ...known };
  const decided = sliceOfEvent[event.type].decide(body, context);
  return isStub ? withoutTexts(event.type, decided) : decided;
}

/** Assumes the recorded chain reading; the check `balances` compares it with the chain. */
function recordedReading({ type, payload }: MoveEvent): ReadChain {
  return () => {
    const token = type === 'chamber.created' || type === 'chamber.joined' ? payload.token : undefined;
    const isBlockOptional = type !== 'chamber.created' || payload.admission?.token?.at !== 'creation';
    if (token === undefined || (!isBlockOptional && (token.blockNumber === undefined || token.blockHash === undefined)))
      throw new ForumError('FORUM_ERR_ADMISSION', 'token: the event does not record the balance');
    // If the decision needs another kind of reading, its result differs from the line.
    return token as never;
  };
}

function evolved(before: ChamberState | null, event: ChamberEvent): ChamberState {
  const state = evolveChamber(before, event);
  return isMove(event) ? state : { ...state, settlement: shortened(state.settlement, event) };
}

/** Bounds time and memory, regardless of the number of transactions. */
function shortened(settlement: Settlement, { type, payload }: ServiceEvent): Settlement {
  if (type === 'relay.commit_submitted')
    return { ...settlement, commitSubmitted: decisive(settlement.commitSubmitted) };
  if (type !== 'relay.deploy_submitted') return settlement;
  const { outcome, submitted } = deploymentOf(settlement, payload.ideaId);
  const deployment = { outcome, submitted: decisive(submitted) };
  return { ...settlement, deployments: new Map(settlement.deployments).set(payload.ideaId, deployment) };
}

/** The rules depend only on the transactions with the highest nonce and the newest one. */
function decisive<One extends RecordedTransaction>(submitted: readonly One[]): readonly One[] {
  const highest = submitted.reduce((one, other) => (other.nonce >= one.nonce ? other : one));
  return [...new Set([highest, ...submitted.slice(-1)])];
}

function attempt<Value>(action: () => Value): Value | ForumError {
  try {
    return action();
  } catch (error) {
    if (error instanceof ForumError) return error;
    throw error;
  }
}

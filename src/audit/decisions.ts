// Decides every move again, with the service's own pure functions, from the request in its line: what the line says of itself
// is only compared with that. The state behind the decisions is folded from what was decided here.
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { createChamber } from '../moves/create-chamber.ts';
import { type DecisionContext, type Move, NO_LIMITS, parseBody } from '../moves/move.ts';
import { moveOfEvent } from '../moves/registry.ts';
import { canonicalJson } from '../vocabulary/canonical-json.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { MoveEvent, MoveFact, MovePayloads, ServiceEvent } from '../vocabulary/events.ts';
import { parseJson } from '../vocabulary/parse-json.ts';
import type { JsonValue } from '../vocabulary/values.ts';
import { differences } from './differences.ts';
import type { Ledger } from './ledger.ts';

export class Decisions {
  readonly #ledger: Ledger;
  #state: ChamberState | null = null;
  #lossEventId: number | undefined;
  #refusedEventId: number | undefined;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** The chamber after what was decided so far; null before `chamber.created`. */
  get state(): ChamberState | null {
    return this.#state;
  }

  /** The event whose effect is not known, so that nothing after it can be judged by the state. */
  get lossEventId(): number | undefined {
    return this.#lossEventId;
  }

  /** An event is missing or can't be read. */
  lose(eventId: number): void {
    this.#lossEventId ??= eventId;
  }

  /** The event's bytes were altered: if it was refused, that may be why, and its true effect is lost. */
  distrust(eventId: number): void {
    if (this.#refusedEventId === eventId) this.lose(eventId);
  }

  check(event: MoveEvent, eventId: number): void {
    const asked = attempt(() => toCommand(event, requestedBody(event)));
    if (this.#lossEventId === undefined) this.#checkDecision(event, asked, eventId);
    else this.#checkContent(event, asked, eventId);
  }

  /** Service events say themselves what happened on the chain; only the fold is shared with the moves. */
  fold(event: ServiceEvent): void {
    if (this.#state !== null) this.#state = evolveChamber(this.#state, event);
  }

  #checkDecision(event: MoveEvent, asked: Command | ForumError, eventId: number): void {
    const decided = asked instanceof ForumError ? asked : attempt(() => decide(asked, event, this.#state));
    if (decided instanceof ForumError) {
      const sentence = `event ${eventId} (${event.type}) had to be refused: ${decided.code}: ${decided.message}`;
      this.#ledger.broken('rules', [eventId], sentence);
      this.#refusedEventId = eventId;
    } else {
      this.#ledger.verified('rules');
      this.#comparePayload(event, decided, eventId);
    }
    this.#fold(event, decided);
  }

  #comparePayload(event: MoveEvent, decided: MoveFact, eventId: number): void {
    const differing = differences(decided.payload, event.payload, { isExact: true });
    this.#ledger.judge('payload', differing.length === 0, {
      eventIds: [eventId],
      sentence: `event ${eventId} (${event.type}) says otherwise than its request: ${differing.join(', ')}`,
    });
  }

  /** A move that the rules refuse has no effect, unless its payload alone would have been allowed: then its evidence was altered. */
  #fold(event: MoveEvent, decided: MoveFact | ForumError): void {
    const fact = decided instanceof ForumError ? attempt(() => decideImplied(event, this.#state)) : decided;
    if (fact instanceof ForumError) return;
    this.#state = evolveChamber(this.#state, { ...event, ...fact } as MoveEvent);
  }

  /** All that can be said without a state: whether the payload holds what was asked for. */
  #checkContent(event: MoveEvent, asked: Command | ForumError, eventId: number): void {
    this.#ledger.notEvaluated('rules', `event ${this.#lossEventId} is lost, and later moves depend on it`);
    const implied = attempt(() => toCommand(event, impliedBody(event)));
    const isSame = canonicalJson(bodyOf(asked)) === canonicalJson(bodyOf(implied));
    const sentence = `event ${eventId} (${event.type}) says otherwise than its request`;
    this.#ledger.judge('payload', isSame, { eventIds: [eventId], sentence });
  }
}

/** The parsed body of the signed request; of an unsigned one, what its payload implies. */
function requestedBody(event: MoveEvent): JsonValue | undefined {
  const body = event.request?.body;
  if (body === undefined || body === null) return impliedBody(event);
  return body === '' ? undefined : parseJson(body);
}

interface Command {
  readonly type: MoveEvent['type'];
  readonly body: unknown;
}

function sliceOf(type: MoveEvent['type']): Move<keyof MovePayloads, unknown, DecisionContext> {
  return moveOfEvent[type];
}

function impliedBody({ type, payload }: MoveEvent): JsonValue {
  return sliceOf(type).impliedBody(payload);
}

function toCommand({ type }: MoveEvent, body: JsonValue | undefined): Command {
  return { type, body: parseBody(moveOfEvent[type], body) };
}

function decide({ type, body }: Command, event: MoveEvent, state: ChamberState | null): MoveFact {
  const now = Date.parse(event.ts);
  if (type === 'chamber.created') {
    if (state !== null) throw new ForumError('FORUM_ERR_CONFLICT', `chamber ${state.chamberId} exists already`);
    const context = { now, openChambers: 0, limits: NO_LIMITS };
    return { type, payload: createChamber.decide(body as Parameters<typeof createChamber.decide>[0], context) };
  }
  if (state === null) throw new ForumError('FORUM_ERR_NOT_FOUND', 'the chamber has not been created yet');
  // The wallet is the registration's, which no line of a chamber shows: taken as recorded.
  const wallet = event.type === 'chamber.proposed' ? event.payload.creatorWallet : '';
  const context = { state, did: event.did, wallet, now, limits: NO_LIMITS };
  return { type, payload: sliceOf(type).decide(body, context) } as MoveFact;
}

function decideImplied(event: MoveEvent, state: ChamberState | null): MoveFact {
  return decide(toCommand(event, impliedBody(event)), event, state);
}

function attempt<Value>(action: () => Value): Value | ForumError {
  try {
    return action();
  } catch (error) {
    if (error instanceof ForumError) return error;
    throw error;
  }
}

function bodyOf(command: Command | ForumError): unknown {
  return command instanceof ForumError ? command.message : command.body;
}

// Decides every move again, with the service's own pure functions, from the request in its line: what the line says is only
// compared with that. The state behind the decisions is folded from what was decided here.
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { createChamber } from '../moves/create-chamber.ts';
import { type DecisionContext, type Move, NO_LIMITS, parseBody } from '../moves/move.ts';
import { moveOfEvent } from '../moves/registry.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { MoveEvent, MoveFact, MovePayloads, ServiceEvent } from '../vocabulary/events.ts';
import { canonicalJson, parseJson } from '../vocabulary/json.ts';
import type { JsonValue } from '../vocabulary/values.ts';
import { differences, type Findings } from './findings.ts';

export class Decisions {
  readonly #findings: Findings;
  #state: ChamberState | null = null;
  #lostEventId: number | undefined;
  #rejectedEventId: number | undefined;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** The chamber after all decisions so far; null before `chamber.created`. */
  get state(): ChamberState | null {
    return this.#state;
  }

  /** An event whose effect is unknown, so that nothing after it can be judged by the state. */
  get lostEventId(): number | undefined {
    return this.#lostEventId;
  }

  /** An event is missing or unreadable. */
  lose(eventId: number): void {
    this.#lostEventId ??= eventId;
  }

  /** The event's bytes were altered: if it was rejected, that may be the reason, and its true effect is lost. */
  distrust(eventId: number): void {
    if (this.#rejectedEventId === eventId) this.lose(eventId);
  }

  check(event: MoveEvent, eventId: number): void {
    const requested = attempt(() => parseRequest(event));
    if (this.#lostEventId === undefined) this.#checkDecision(event, requested, eventId);
    else this.#checkContent(event, requested, eventId);
  }

  /** Service events themselves say what happened on the chain; only the fold is shared with the moves. */
  fold(event: ServiceEvent): void {
    if (this.#state !== null) this.#state = evolveChamber(this.#state, event);
  }

  #checkDecision(event: MoveEvent, requested: Requested | ForumError, eventId: number): void {
    const decided = requested instanceof ForumError ? requested : attempt(() => decide(event, requested, this.#state));
    if (decided instanceof ForumError) {
      const sentence = `event ${eventId} (${event.type}) breaks a rule: ${decided.code}: ${decided.message}`;
      this.#findings.broken('rules', [eventId], sentence);
      this.#rejectedEventId = eventId;
    } else {
      this.#findings.verified('rules');
      const differing = differences(decided.payload, event.payload, true);
      this.#findings.judge('payload', differing.length === 0, {
        eventIds: [eventId],
        sentence: `event ${eventId} (${event.type}) does not match its request: ${differing.join(', ')}`,
      });
    }
    this.#foldMove(event, decided);
  }

  /** A rejected move has no effect, unless its payload alone would have been allowed: then its evidence was altered. */
  #foldMove(event: MoveEvent, decided: MoveFact | ForumError): void {
    const fact =
      decided instanceof ForumError ? attempt(() => decide(event, parseImplied(event), this.#state)) : decided;
    if (fact instanceof ForumError) return;
    // The fact has the event's type, which a spread over a union can't express.
    this.#state = evolveChamber(this.#state, { ...event, ...fact } as MoveEvent);
  }

  /** All that can be checked without a state: whether the payload holds what was requested. */
  #checkContent(event: MoveEvent, requested: Requested | ForumError, eventId: number): void {
    this.#findings.notEvaluated('rules', `event ${this.#lostEventId} is lost, and later moves depend on it`);
    const implied = attempt(() => parseImplied(event));
    const isSame = canonicalJson(contentOf(requested)) === canonicalJson(contentOf(implied));
    const sentence = `event ${eventId} (${event.type}) does not match its request`;
    this.#findings.judge('payload', isSame, { eventIds: [eventId], sentence });
  }
}

/** A body that is valid for its move. */
interface Requested {
  readonly body: unknown;
}

/** The body of the signed request; of an unsigned one, what its payload implies. */
function parseRequest(event: MoveEvent): Requested {
  const text = event.request?.body;
  if (text === undefined || text === null) return parseImplied(event);
  return { body: parseBody(sliceOf(event), { json: text === '' ? undefined : parseJson(text) }) };
}

function parseImplied(event: MoveEvent): Requested {
  const slice = sliceOf(event);
  const body: JsonValue = slice.impliedBody(event.payload);
  return { body: parseBody(slice, { json: body }) };
}

function sliceOf({ type }: MoveEvent): Move<keyof MovePayloads, unknown, DecisionContext> {
  return moveOfEvent[type];
}

function decide(event: MoveEvent, { body }: Requested, state: ChamberState | null): MoveFact {
  const now = Date.parse(event.ts);
  const { did, type } = event;
  if (type === createChamber.event) {
    if (state !== null) throw new ForumError('FORUM_ERR_CONFLICT', `chamber ${state.chamberId} already exists`);
    const context = { now, openChambers: 0, limits: NO_LIMITS };
    return { type, payload: createChamber.decide(body as Parameters<typeof createChamber.decide>[0], context) };
  }
  if (state === null) throw new ForumError('FORUM_ERR_NOT_FOUND', 'the chamber was not created before');
  // The wallet is the registration's, which no line of a chamber shows: taken as recorded.
  const wallet = 'creatorWallet' in event.payload ? event.payload.creatorWallet : '';
  const context = { state, did, wallet, now, limits: NO_LIMITS };
  // A slice's event and payload belong together, which a union over slices can't express.
  return { type, payload: sliceOf(event).decide(body, context) } as MoveFact;
}

function attempt<Value>(action: () => Value): Value | ForumError {
  try {
    return action();
  } catch (error) {
    if (error instanceof ForumError) return error;
    throw error;
  }
}

function contentOf(requested: Requested | ForumError): unknown {
  return requested instanceof ForumError ? requested.message : requested.body;
}

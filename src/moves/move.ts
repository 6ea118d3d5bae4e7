// A move is one slice: everything that the service, the documents, the command line and the auditor know about one kind of event. The
// registry lists the slices; no other code switches over them.
import * as v from 'valibot';
import type { ChamberState } from '../../projections/chamber.ts';
import { type ErrorCode, invalid } from '../vocabulary/errors.ts';
import type { AccountPayloads, MovePayloads } from '../vocabulary/events.ts';
import { requireExactNumbers } from '../vocabulary/json.ts';
import { exactly, id, integer, sentHash } from '../vocabulary/schemas.ts';
import type { Hex, JsonValue, Millis } from '../vocabulary/values.ts';
import type { ReadChain } from './chain-question.ts';

type Payloads = AccountPayloads & MovePayloads;

export interface Move<Type extends keyof Payloads = keyof Payloads, Body = unknown, Context = never> {
  /** The move's name in OpenAPI, the command line and the client. */
  readonly operation: string;
  readonly method: 'POST' | 'PUT';
  /** The path within the service, with `:id` for the chamber. */
  readonly path: string;
  /** The type of the event that an accepted request becomes. */
  readonly event: Type;
  /** The request's body; unknown members are rejected. */
  readonly body: v.GenericSchema<unknown, Body>;
  /** The schema for lines of the log, if earlier releases accepted more than `body` does. */
  readonly earlierBody?: v.GenericSchema<unknown, Body>;
  /** A request without a body counts as `{}`. */
  readonly isBodyOptional?: boolean;
  /** The exact payload of the event. The schema must accept everything that earlier releases wrote. */
  readonly payload: v.GenericSchema<Payloads[Type]>;
  readonly response: v.GenericSchema;
  /** Pure, so that the auditor can repeat every decision. Throws ForumError. */
  decide(body: Body, context: Context): Payloads[Type];
  /** Depends only on the event, so that a retry gets its response from the log. */
  answer(event: {
    readonly chamberId: number | null;
    readonly eventId: number;
    readonly did: string;
    readonly payload: Payloads[Type];
  }): unknown;
  /** Rebuilds the request's body from the payload, without values that the service assigned. */
  impliedBody(payload: Payloads[Type]): JsonValue;
  /** Whether the chamber's state keeps no part of the payload, so that the event takes no memory. */
  readonly isTransient?: boolean;
  /** Whether members may reply to the event. */
  readonly takesReplies?: boolean;
  /** Returns the event id that the body replies to; undefined if the member is absent or malformed. */
  replyTo?(body: JsonValue | undefined): number | undefined;
  /** Describes the event to people, in one line. */
  narrate(payload: Payloads[Type], names: Names): string;
  readonly texts: MoveTexts;
  readonly example: { readonly body: JsonValue; readonly payload: Payloads[Type]; readonly answer: unknown };
}

/** Formats DIDs, ideas and untrusted texts in a narration. */
export interface Names {
  readonly agent: (did: string) => string;
  readonly idea: (ideaId: string | null) => string;
  /** Formats text written by an agent or a contract. */
  readonly words: (text: string) => string;
}

export interface MoveTexts {
  readonly tag: 'Accounts' | 'Chambers' | 'Moves' | 'Allocations';
  readonly summary: string;
  readonly description: string;
  readonly answered: string;
  /** Errors in addition to those of all signed requests and of all moves in a chamber. */
  readonly errors: readonly ErrorCode[];
  /** When the move is allowed and its body, for the table in the agent guide. */
  readonly guide?: { readonly when: string; readonly body: string };
  /** The command `chambers move <operation>`. */
  readonly command?: {
    readonly summary: string;
    readonly example: string;
    /** Each option has the body's member, a placeholder for its value, and help. */
    readonly options?: Readonly<
      Record<string, { readonly member: string; readonly value: string; readonly help: string }>
    >;
  };
}

export interface ChamberLimits {
  readonly membersMax: number;
  readonly ideasMax: number;
  readonly openChambersPerDidMax: number;
}

/** Limits that reject nothing, because the auditor does not know the configuration. */
export const NO_LIMITS: ChamberLimits = {
  membersMax: Number.POSITIVE_INFINITY,
  ideasMax: Number.POSITIVE_INFINITY,
  openChambersPerDidMax: Number.POSITIVE_INFINITY,
};

/** The part of the caller's account that decisions read. */
export interface DecidingAccount {
  readonly walletAddress: string;
  /** Whether the key's holder has proved ownership of the wallet; undefined when auditing events of earlier releases. */
  readonly walletProven: boolean | undefined;
  readonly label: string | null;
  /** The last event of the account, which the event names; undefined when auditing events of earlier releases. */
  readonly lastEventId: number | undefined;
}

/** The payload member that names the account event read by the decision. */
export const accountEventId = v.exactOptional(
  v.pipe(id, v.description("the head of the signer's account stream that the decision read; absent in older events")),
);

/** The input of a decision about a move in an existing chamber. */
export interface DecisionContext {
  readonly state: ChamberState;
  readonly did: string;
  /** The caller's account at the time of the decision. */
  readonly account: DecidingAccount;
  readonly now: Millis;
  readonly limits: ChamberLimits;
  readonly readChain: ReadChain;
  /** Whether the auditor is repeating the decision of an event whose texts are withheld. */
  readonly isStub?: boolean;
  /** Whether the event exists in the chamber and accepts replies. Called only if the body has `replyTo`. */
  readonly takesReplies: (eventId: number) => boolean;
}

/** Defines a move in a chamber. The payload is the decision's result plus the account event that the decision read. */
export function defineMove<
  Type extends keyof MovePayloads,
  Body,
  Context extends { readonly account: DecidingAccount } = DecisionContext,
>(slice: Move<Type, Body, Context>): Move<Type, Body, Context> {
  return {
    ...slice,
    decide: (body, context) => ({ ...slice.decide(body, context), accountEventId: context.account.lastEventId }),
  };
}

export interface SentBody {
  /** undefined for a request without a body. */
  readonly json: JsonValue | undefined;
  /** The text of a new request, whose numbers must be exact; absent for lines of the log. */
  readonly text?: string;
}

/** The last event of the chamber that an agent claims to have seen, with the leaf hash of its line. */
export interface SeenEvent {
  readonly eventId: number;
  readonly leaf: Hex;
}

const seen: v.GenericSchema<unknown, SeenEvent> = exactly({
  eventId: integer(1, Number.MAX_SAFE_INTEGER),
  leaf: sentHash('of its line'),
});

/**
 * The schema for the body of a move in a chamber: these members, and optionally `seen`. If a service shows agents different histories, the
 * first move sent from one history to another reveals it.
 */
export function moveBody<Entries extends v.ObjectEntries>(entries: Entries) {
  const description =
    'the last event that the agent had verified; 409 FORUM_ERR_HISTORY if the chamber has another there';
  return exactly({ ...entries, seen: v.exactOptional(v.pipe(seen, v.description(description))) });
}

/** Reads the event id in `seen` before the body is validated, so that the event can be loaded early. */
export function seenEventIdIn(body: JsonValue | undefined): number | undefined {
  if (typeof body !== 'object' || body === null || !('seen' in body)) return undefined;
  const { seen: stated } = body;
  if (typeof stated !== 'object' || stated === null || !('eventId' in stated)) return undefined;
  const { eventId } = stated;
  return typeof eventId === 'number' && Number.isSafeInteger(eventId) && eventId > 0 ? eventId : undefined;
}

/** Returns the body's `seen`; undefined if it is absent or malformed. The schema reports a malformed one. */
export function seenIn(body: JsonValue | undefined): SeenEvent | undefined {
  if (typeof body !== 'object' || body === null || !('seen' in body)) return undefined;
  const { success, output } = v.safeParse(seen, body['seen' as keyof typeof body]);
  return success ? output : undefined;
}

/** A member that the service stores as sent and never interprets. */
const OPAQUE_MEMBER = 'refinement';

/**
 * If an invalid body has more members and elements than this, only the first problem is reported, because naming thousands would take
 * longer than the rest of the request.
 */
const NAMED_VALUES_MAX = 1_000;

/** Validates a body. Throws FORUM_ERR_VALIDATION, whose detail names the path of every invalid or missing member. */
export function parseBody<Body>(
  move: Pick<Move<keyof Payloads, Body>, 'body' | 'earlierBody' | 'isBodyOptional'>,
  { json, text }: SentBody,
): Body {
  const input = json === undefined && move.isBodyOptional ? {} : json;
  const body = text === undefined ? (move.earlierBody ?? move.body) : move.body;
  const result = v.safeParse(body, input, { abortEarly: true, abortPipeEarly: true });
  if (!result.success) {
    const isLarge = countValues(json) > NAMED_VALUES_MAX;
    const { issues = [] } = isLarge ? result : v.safeParse(body, input, { abortPipeEarly: true });
    throw invalid([...new Set(issues.map(describe))].join('; '));
  }
  if (text !== undefined) requireExactNumbers(text, OPAQUE_MEMBER);
  return result.output;
}

function countValues(value: JsonValue | undefined): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, item) => sum + countValues(item as JsonValue), 1);
}

function describe(issue: v.BaseIssue<unknown>): string {
  const path = (issue.path ?? []).map((item) => (typeof item.key === 'number' ? `[${item.key}]` : `.${item.key}`));
  const member = path.join('').replace(/^\./, '') || 'body';
  // Valibot's message for a missing key does not name the member.
  return `${member}: ${issue.input === undefined ? 'is required' : issue.message}`;
}

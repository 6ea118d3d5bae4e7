// The texts of each event type that a service can withhold, and their replacements. Unlisted types have none, so a service can't hide
// a vote.
import type { AccountPayloads, MovePayloads } from './events.ts';
import { canonicalJson, parseJson } from './json.ts';
import type { ServicePayloads } from './service-payloads.ts';
import type { JsonValue } from './values.ts';
import { WITHHELD_TEXT } from './withheld.ts';

type Payloads = AccountPayloads & MovePayloads & ServicePayloads;
type Names<Payload> = Payload extends unknown ? keyof Payload : never;

const ABSENT = undefined;
type Replacements<Type extends keyof Payloads> = {
  readonly [Name in Names<Payloads[Type]>]?: JsonValue | typeof ABSENT;
};

/** The replacement of each text in the payload. Requests contain the texts under the same names. */
const TEXTS: { readonly [Type in keyof Payloads]?: Replacements<Type> } = {
  'agent.registered': { label: ABSENT, personality: {} },
  'agent.personality_changed': { patch: {}, personality: {} },
  'chamber.created': { name: WITHHELD_TEXT, topic: ABSENT },
  'chamber.joined': { label: ABSENT },
  'chamber.proposed': { name: WITHHELD_TEXT, description: '' },
  'chamber.amended': { name: WITHHELD_TEXT, description: '' },
  'chamber.debated': { comment: WITHHELD_TEXT, refinement: ABSENT },
  'relay.deploy_submitted': { rawTransaction: ABSENT },
  'idea.deploy_failed': { reason: WITHHELD_TEXT },
};

/** Types whose texts come from the account or the service, so that no request contains them. */
const NOT_SENT: ReadonlySet<string> = new Set<keyof Payloads>([
  'chamber.joined',
  'relay.deploy_submitted',
  'idea.deploy_failed',
]);

/** Required members that only a stub may lack. */
const ABSENT_IN_STUBS: { readonly [Type in keyof Payloads]?: readonly Names<Payloads[Type]>[] } = {
  'chamber.debated': ['refinement'],
  'relay.deploy_submitted': ['rawTransaction'],
};

type Replacement = readonly [name: string, replacement: JsonValue | undefined];

function replacementsOf(type: string): readonly Replacement[] {
  if (!Object.hasOwn(TEXTS, type)) return [];
  return Object.entries(TEXTS[type as keyof Payloads] as Readonly<Record<string, JsonValue | undefined>>);
}

export function hasTexts(type: string): boolean {
  return Object.hasOwn(TEXTS, type);
}

/** Returns the names of the texts in a payload or a request's body. A replacement does not count as a text. */
export function textsIn(type: string, holder: object): readonly string[] {
  const held = ([name, replacement]: Replacement) => {
    const value = Object.hasOwn(holder, name) ? (holder as Readonly<Record<string, unknown>>)[name] : null;
    return value !== undefined && value !== null && canonicalJson(value) !== canonicalJson(replacement);
  };
  return replacementsOf(type)
    .filter(held)
    .map(([name]) => name);
}

/** Returns the payload without its texts. Absent members stay absent. */
export function withoutTexts<Payload extends object>(type: string, payload: Payload): Payload {
  const without = { ...payload } as Record<string, unknown>;
  for (const [name, replacement] of replacementsOf(type)) {
    if (replacement === ABSENT) delete without[name];
    else if (Object.hasOwn(without, name)) without[name] = replacement;
  }
  // Each replacement has its member's type, and only optional members are removed.
  return without as Payload;
}

/** Whether a stub of this type omits the request. */
export function hidesRequest(type: string): boolean {
  return hasTexts(type) && !NOT_SENT.has(type);
}

/** Returns a missing member that only a stub may lack. */
export function missingMember(type: string, payload: object): string | undefined {
  const names: readonly string[] = Object.hasOwn(ABSENT_IN_STUBS, type)
    ? (ABSENT_IN_STUBS[type as keyof Payloads] ?? [])
    : [];
  return names.find((name) => !Object.hasOwn(payload, name));
}

/** Whether a request's raw body contains one of the texts. An unreadable body counts as containing one. */
export function bodyHoldsText(type: string, body: string | null): boolean {
  if (body === '' || NOT_SENT.has(type)) return false;
  try {
    return body === null || textsIn(type, Object(parseJson(body))).length > 0;
  } catch {
    return true;
  }
}

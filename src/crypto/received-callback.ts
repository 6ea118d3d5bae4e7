// Parses a received callback, which is untrusted: anybody may have sent it.
import { type InnerList, isInnerList, parseDictionary, serializeInnerList } from 'structured-headers';
import { CALLBACK_COMPONENTS, CALLBACK_TAG, callbackBase, type SignedCallback } from './callback.ts';
import { contentDigestOf, digestProblem } from './content-digest.ts';
import type { Terms } from './receipt.ts';

type Component = (typeof CALLBACK_COMPONENTS)[number];

const SIGNATURE_BYTES = 64;
/** Several times the length of the service's own headers. */
const FIELD_CHARS_MAX = 4_096;

export interface ReceivedCallback {
  readonly method: string;
  /** The URL that the agent has set as its callback. */
  readonly targetUri: string;
  readonly headers: Pick<Headers, 'get'>;
  readonly body: Uint8Array;
}

export interface ParsedCallback extends Terms {
  /** The same for every attempt of one duty. */
  readonly webhookId: string;
  /** 64 bytes. */
  readonly signature: Uint8Array;
  /** The signed text. */
  readonly base: Uint8Array;
}

/** Checks everything except the age and the signature; throws an Error that names the problem. */
export function parseCallback({ method, targetUri, headers, body }: ReceivedCallback): ParsedCallback {
  const field = (name: string) => {
    const value = headers.get(name);
    if (value === null) throw new Error(`it has no header ${name}`);
    if (value.length > FIELD_CHARS_MAX) throw new Error(`its ${name} header is too long`);
    return value;
  };
  const [label, input] = taggedMember(field('signature-input'));
  const { components, created, keyid } = termsOf(input);
  const request: SignedCallback = {
    '@method': method,
    '@target-uri': targetUri,
    'content-digest': field('content-digest'),
    'webhook-id': field('webhook-id'),
    'webhook-timestamp': field('webhook-timestamp'),
  };
  if (request['webhook-timestamp'] !== `${created}`)
    throw new Error('its webhook-timestamp differs from the time of its signature');
  const problem = digestProblem(request['content-digest'], contentDigestOf(body));
  if (problem !== undefined) throw new Error(problem);
  const base = new TextEncoder().encode(callbackBase(request, serializeInnerList(input), components));
  return { created, keyid, webhookId: request['webhook-id'], signature: signatureOf(field('signature'), label), base };
}

function taggedMember(field: string): readonly [label: string, input: InnerList] {
  for (const [label, member] of dictionaryIn('Signature-Input', field)) {
    if (isInnerList(member) && member[1].get('tag') === CALLBACK_TAG) return [label, member];
  }
  throw new Error(`it has no signature with the tag ${CALLBACK_TAG}`);
}

function dictionaryIn(name: string, field: string): ReturnType<typeof parseDictionary> {
  try {
    return parseDictionary(field);
  } catch {
    throw new Error(`its ${name} header is malformed`);
  }
}

function termsOf([items, parameters]: InnerList): Terms & { readonly components: readonly Component[] } {
  const names = items.map(([name, own]) => (own.size === 0 ? name : undefined));
  const isWhole =
    names.length === CALLBACK_COMPONENTS.length && CALLBACK_COMPONENTS.every((each) => names.includes(each));
  if (!isWhole) throw new Error(`its signature must cover ${CALLBACK_COMPONENTS.join(', ')}, and nothing else`);
  const { created, keyid, alg, tag: _, ...others } = Object.fromEntries(parameters);
  const isTyped = Number.isSafeInteger(created) && typeof keyid === 'string' && alg === 'ed25519';
  if (!isTyped || Object.keys(others).length > 0) throw new Error('its parameters are not those of a callback');
  return { components: names as Component[], created: created as number, keyid };
}

function signatureOf(field: string, label: string): Uint8Array {
  const member = dictionaryIn('Signature', field).get(label);
  const value = member === undefined || isInnerList(member) ? undefined : member[0];
  if (value instanceof ArrayBuffer && value.byteLength === SIGNATURE_BYTES) return new Uint8Array(value);
  throw new Error(`its Signature header contains no signature ${label} of ${SIGNATURE_BYTES} bytes`);
}

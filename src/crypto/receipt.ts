// Receipts: responses signed by the service (RFC 9421), each promising that the signed request became this event with this leaf.
// All parsed input is untrusted: Accept-Signature in the service, responses in the client, files in the auditor.
import { base64 } from '@scure/base';
import {
  type BareItem,
  type InnerList,
  type Item,
  isInnerList,
  parseDictionary,
  parseItem,
  serializeInnerList,
  serializeItem,
} from 'structured-headers';
import type { RequestEvidence } from '../vocabulary/events.ts';
import { LOG_ID } from '../vocabulary/values.ts';
import { contentDigestOf } from './content-digest.ts';
import { parseDid } from './did-key.ts';
import { parseSignature } from './http-signature.ts';
import type { Jwk } from './jwk.ts';
import { signatureBaseOf } from './signature-base.ts';

export const RECEIPT_TAG = 'chamber-receipt';

/** The components that a receipt must cover, exactly, in any order. */
const COMPONENTS = [
  '"@status"',
  '"content-digest"',
  '"event"',
  '"log-id"',
  '"@method";req',
  '"@target-uri";req',
  '"content-digest";req',
  '"signature-input";req;key="sig1"',
  '"signature";req;key="sig1"',
] as const;
type Component = (typeof COMPONENTS)[number];

const COVERED = `(${COMPONENTS.join(' ')})`;
const LEAF_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** A request for a receipt in `Accept-Signature` (RFC 9421, 5.1). */
export interface WantedReceipt {
  readonly label: string;
  /** The components in the client's order. */
  readonly covered: string;
  readonly components: readonly Component[];
  readonly nonce: string | undefined;
  readonly keyid: string | undefined;
}

/** Returns the value of Accept-Signature that requests a receipt. The nonce must consist of letters and digits. */
export function acceptReceipt(nonce: string): string {
  return `receipt=${COVERED};created;nonce="${nonce}";tag="${RECEIPT_TAG}"`;
}

// This project's client sends this form, which a regular expression parses in a fraction of the time.
const USUAL_FORM = new RegExp(
  `^receipt=${COVERED.replace(/[()]/g, '\\$&')};created;nonce="([ !#-[\\]-~]*)";tag="${RECEIPT_TAG}"$`,
);

/** Returns the first request for a receipt; undefined if the header is malformed or contains no acceptable request. */
export function wantedReceipt(header: string): WantedReceipt | undefined {
  const [, usualNonce] = USUAL_FORM.exec(header) ?? [];
  if (usualNonce !== undefined) {
    return { label: 'receipt', covered: COVERED, components: COMPONENTS, nonce: usualNonce, keyid: undefined };
  }
  for (const [label, member] of dictionaryOf(header)) {
    const wanted = isInnerList(member) ? toWanted(label, member) : undefined;
    if (wanted !== undefined) return wanted;
  }
  return undefined;
}

function dictionaryOf(header: string): ReturnType<typeof parseDictionary> {
  try {
    return parseDictionary(header);
  } catch {
    return new Map();
  }
}

function toWanted(label: string, [items, parameters]: InnerList): WantedReceipt | undefined {
  const components = componentsOf(items);
  const { created = true, alg = 'ed25519', tag, nonce, keyid, ...others } = Object.fromEntries(parameters);
  const isAcceptable = created === true && alg === 'ed25519' && tag === RECEIPT_TAG && Object.keys(others).length === 0;
  if (components === undefined || !isAcceptable || !isOptionalText(nonce) || !isOptionalText(keyid)) return undefined;
  return { label, covered: serializeInnerList([items, new Map()]), components, nonce, keyid };
}

function isOptionalText(value: BareItem | undefined): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

/** Returns undefined unless the items are exactly the components of a receipt. */
function componentsOf(items: readonly Item[]): readonly Component[] | undefined {
  const components = items.map(componentOf);
  const isWhole = components.length === COMPONENTS.length && COMPONENTS.every((each) => components.includes(each));
  return isWhole ? (components as readonly Component[]) : undefined;
}

/** Normalises a component, whose parameters may be in any order. */
function componentOf([name, parameters]: Item): string {
  const { req, key, ...others } = Object.fromEntries(parameters);
  const isKnown = typeof name === 'string' && Object.keys(others).length === 0;
  if (!isKnown || !(req === undefined || req === true)) return '';
  return `"${name}"${req === undefined ? '' : ';req'}${key === undefined ? '' : `;key=${JSON.stringify(key)}`}`;
}

/** The signed request, as recorded in its event's line. */
export type ReceiptRequest = Omit<RequestEvidence, 'body'>;

export interface ReceiptResponse {
  readonly status: number;
  readonly contentDigest: string;
  readonly event: string;
  readonly logId: string;
}

export interface Terms {
  /** Seconds since 1970-01-01T00:00:00Z. */
  readonly created: number;
  /** The thumbprint of the service's key. */
  readonly keyid: string;
}

/** Returns the value of "@signature-params". */
export function receiptParams({ covered, nonce }: WantedReceipt, { created, keyid }: Terms): string {
  const echoed = nonce === undefined ? '' : `;nonce=${serializeItem(nonce)}`;
  return `${covered};created=${created};keyid="${keyid}";alg="ed25519"${echoed};tag="${RECEIPT_TAG}"`;
}

/** Returns the signature base (RFC 9421, 2.5). Throws if the request has no signature `sig1` or contains a line break. */
export function receiptBase(
  components: readonly Component[],
  params: string,
  { request, response }: { readonly request: ReceiptRequest; readonly response: ReceiptResponse },
): string {
  const signed = parseSignature(request);
  const values: Readonly<Record<Component, string>> = {
    '"@status"': String(response.status),
    '"content-digest"': response.contentDigest,
    '"event"': response.event,
    '"log-id"': response.logId,
    '"@method";req': request.method,
    '"@target-uri";req': request.targetUri,
    '"content-digest";req': request.contentDigest.trim(),
    '"signature-input";req;key="sig1"': signed.params,
    '"signature";req;key="sig1"': `:${base64.encode(signed.signature)}:`,
  };
  const [, inner = ''] = /^\((.*?)\)(?:;|$)/.exec(params) ?? [];
  const identifiers = inner.split(' ');
  const fields = components.map((component, index) => [`${identifiers[index]}`, values[component]] as const);
  return signatureBaseOf(fields, params);
}

export interface ReceiptedEvent {
  /** A chamber id or a DID. */
  readonly stream: number | string;
  readonly eventId: number;
  /** 32 bytes. */
  readonly leaf: Uint8Array;
}

/** Returns the value of the `Event` header, an item of RFC 8941. */
export function eventField({ stream, eventId, leaf }: ReceiptedEvent): string {
  return `${typeof stream === 'number' ? stream : `"${stream}"`};id=${eventId};leaf=:${base64.encode(leaf)}:`;
}

/** Returns undefined unless `text` is exactly what eventField returns. */
export function parseEventField(text: string): ReceiptedEvent | undefined {
  try {
    const [stream, parameters] = parseItem(text);
    const { id, leaf } = Object.fromEntries(parameters);
    const isStream =
      typeof stream === 'number' ? isPositive(stream) : typeof stream === 'string' && parseDid(stream) !== undefined;
    if (!isStream || !isPositive(id) || !(leaf instanceof ArrayBuffer) || leaf.byteLength !== LEAF_BYTES) {
      return undefined;
    }
    const event = { stream: stream as number | string, eventId: id, leaf: new Uint8Array(leaf) };
    return eventField(event) === text ? event : undefined;
  } catch {
    return undefined;
  }
}

function isPositive(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

/** A signed response with its request. A third party needs only the service's key to verify it. */
export interface Receipt {
  readonly request: ReceiptRequest;
  readonly response: ReceiptResponse & {
    readonly body: string;
    readonly signatureInput: string;
    readonly signature: string;
  };
}

/** A receipt with the key that it names, so that it can be verified without the service. */
export interface KeptReceipt extends Receipt {
  readonly key: Jwk;
}

export interface ParsedReceipt extends Terms, ReceiptedEvent {
  readonly logId: string;
  readonly nonce: string | undefined;
  /** 64 bytes. */
  readonly signature: Uint8Array;
  /** The signed text. */
  readonly base: Uint8Array;
}

/** Checks everything except the signature; throws an Error that names the problem. */
export function parseReceipt(receipt: Receipt): ParsedReceipt {
  const { request, response } = receipt;
  for (const [label, member] of parseDictionary(response.signatureInput)) {
    if (!isInnerList(member)) continue;
    const [items, parameters] = member;
    const { created, keyid, alg, nonce, tag, ...others } = Object.fromEntries(parameters);
    if (tag !== RECEIPT_TAG) continue;
    const components = componentsOf(items);
    if (components === undefined) throw new Error('it does not cover the components of a receipt');
    const isTyped = isPositive(created) && typeof keyid === 'string' && alg === 'ed25519' && isOptionalText(nonce);
    if (!isTyped || Object.keys(others).length > 0) throw new Error('its parameters are not those of a receipt');
    if (response.status !== 200) throw new Error(`its status is ${response.status}`);
    const event = parseEventField(response.event);
    if (event === undefined) throw new Error('its Event header names no event');
    if (response.contentDigest !== contentDigestOf(new TextEncoder().encode(response.body)))
      throw new Error('its Content-Digest is not that of its body');
    if (!LOG_ID.test(response.logId)) throw new Error('its Log-Id header is not a logId');
    const base = new TextEncoder().encode(receiptBase(components, serializeInnerList(member), receipt));
    return { ...event, created, keyid, nonce, logId: response.logId, signature: signatureOf(response, label), base };
  }
  throw new Error(`it has no signature with the tag ${RECEIPT_TAG}, over ${request.method} ${request.targetUri}`);
}

function signatureOf({ signature }: Receipt['response'], label: string): Uint8Array {
  const member = parseDictionary(signature).get(label);
  const value = member === undefined || isInnerList(member) ? undefined : member[0];
  if (value instanceof ArrayBuffer && value.byteLength === SIGNATURE_BYTES) return new Uint8Array(value);
  throw new Error(`its Signature header contains no signature ${label} of ${SIGNATURE_BYTES} bytes`);
}

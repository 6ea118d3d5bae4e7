// The service's profile of HTTP message signatures (RFC 9421): a signature `sig1` over method, URL and body digest. Signatures with
// other labels, such as a proxy's, are ignored. The headers are untrusted; errors say how to fix a signature outside the profile.
import { sha256 } from '@noble/hashes/sha2.js';
import {
  type BareItem,
  type Dictionary,
  type InnerList,
  parseDictionary,
  serializeDictionary,
} from 'structured-headers';
import type { SignatureStep } from '../vocabulary/errors.ts';
import { dictionaryMembers } from './dictionary-field.ts';

const COMPONENTS = ['@method', '@target-uri', 'content-digest'] as const;
type Component = (typeof COMPONENTS)[number];

/** As received; repeated header lines are joined by commas. */
export interface SignatureHeaders {
  readonly signatureInput: string;
  readonly signature: string;
}

export interface SignatureInput {
  /** The value of "@signature-params": components and parameters in the order sent, in canonical form. */
  readonly params: string;
  readonly components: readonly Component[];
  /** Seconds since 1970-01-01T00:00:00Z. */
  readonly created: number;
  /** As sent; not parsed. */
  readonly keyid: string;
  readonly nonce?: string;
  /** Seconds since 1970-01-01T00:00:00Z. */
  readonly expires?: number;
}

export interface ParsedSignature extends SignatureInput {
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

export interface SignedRequest {
  readonly method: string;
  /** The URL as the client used it. */
  readonly targetUri: string;
  /** The header value as received. */
  readonly contentDigest: string;
}

/** Why a signature is rejected. Service, auditor and client report the message, which says how to fix the signature. */
export class SignatureError extends Error {
  readonly step: SignatureStep;

  constructor(step: SignatureStep, message: string) {
    super(message);
    this.name = 'SignatureError';
    this.step = step;
  }
}

export interface Target {
  readonly origin: string;
  readonly hostname: string;
  /** Without the query, with dot segments resolved and %-encodings normalised. */
  readonly path: string;
}

/** Returns undefined for a URI that the service and the auditor reject. */
export function parseTarget(targetUri: string): Target | undefined {
  try {
    const { origin, hostname, pathname } = new URL(targetUri);
    return { origin, hostname, path: normalPath(pathname) };
  } catch {
    return undefined;
  }
}

/**
 * Normalises %-encodings with decodeURI and encodeURI, but keeps %25, so that a path differs from its encoded form. Throws like
 * decodeURI.
 */
function normalPath(pathname: string): string {
  const upper = pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => encoded.toUpperCase());
  return encodeURI(decodeURI(upper.replaceAll('%25', '%2525'))).replaceAll('%25', '%');
}

const SIGNATURE = /^ *sig1=:([^:]*): *$/;
/** The last digit of 64 bytes encodes two bits and four zeros, so every signature has exactly one encoding. */
const BASE64_OF_64_BYTES = /^[A-Za-z0-9+/]{85}[AQgw]==$/;
const SIGNATURE_BYTES = 64;

// Most clients send this canonical form, which a regular expression parses in a third of the time.
const USUAL_INPUT =
  /^sig1=(\("@method" "@target-uri" "content-digest"\);created=(0|[1-9]\d{0,14});keyid="([ !#-[\]-~]*)";alg="ed25519"(?:;nonce="([ !#-[\]-~]*)")?(?:;expires=(0|[1-9]\d{0,14}))?)$/;

/** Throws a SignatureError with step `form` for headers outside the profile. */
export function parseSignature(headers: SignatureHeaders): ParsedSignature {
  const { signatureInput, signature: header } = ownMembers(headers);
  const [, params, created, keyid, nonce, expires] = USUAL_INPUT.exec(signatureInput) ?? [];
  const input =
    params === undefined || keyid === undefined
      ? parseInput(signatureInput)
      : {
          params,
          components: COMPONENTS,
          created: Number(created),
          keyid,
          ...(nonce !== undefined && { nonce }),
          ...(expires !== undefined && { expires: Number(expires) }),
        };
  const [, base64] = SIGNATURE.exec(header) ?? [];
  if (base64 === undefined)
    throw new SignatureError('form', `Signature must contain sig1=:<base64>: without parameters${otherLabels(header)}`);
  if (!BASE64_OF_64_BYTES.test(base64))
    throw new SignatureError('form', 'Signature must contain 64 bytes in base64: standard alphabet, 86 digits and ==');
  // Runs for every request; a library decoder takes four times as long.
  const characters = atob(base64);
  const signature = new Uint8Array(SIGNATURE_BYTES);
  for (let at = 0; at < SIGNATURE_BYTES; at++) signature[at] = characters.charCodeAt(at);
  return { ...input, signature };
}

export const LABEL = 'sig1';
export const FOREIGN_LABELS_MAX = 4;
/** Applies to each of the two fields. Limited because the log keeps the other signatures with the request. */
export const FOREIGN_CHARS_MAX = 4_096;

/** Removes members with other labels; keeps the members of sig1 exactly as sent. */
function ownMembers(headers: SignatureHeaders): SignatureHeaders {
  // Most requests have one signature, without a comma.
  if (!headers.signatureInput.includes(',') && !headers.signature.includes(',')) return headers;
  const { inputs, signatures } = membersOf(headers);
  if (inputs.size === 1 && signatures.size === 1) return headers;
  const problem = foreignProblem(headers, { inputs, signatures });
  if (problem !== undefined) throw inputError(problem);
  const [signatureInput, signature] = [inputs.get(LABEL), signatures.get(LABEL)];
  if (signatureInput === undefined || signature === undefined)
    throw inputError(`must contain the label ${LABEL}${otherLabels(headers.signatureInput)}`);
  return { signatureInput, signature };
}

/** Whether the fields contain only signatures with other labels, within the limits, so that the request counts as unsigned. */
export function isForeignOnly(headers: SignatureHeaders): boolean {
  if (headers.signatureInput.includes(`${LABEL}=`) || headers.signature.includes(`${LABEL}=`)) return false;
  const [inputs, signatures] = [dictionaryMembers(headers.signatureInput), dictionaryMembers(headers.signature)];
  if (inputs === undefined || signatures === undefined || inputs.size === 0) return false;
  return foreignProblem(headers, { inputs, signatures }) === undefined;
}

/** A hint for error messages: the labels of a field that lacks sig1; otherwise empty. */
function otherLabels(field: string): string {
  const labels = labelsOf(field);
  return labels.length === 0 || labels.includes(LABEL) ? '' : `; its labels are ${labels.join(', ')}`;
}

/** Returns the labels in the order sent; empty if the field is not a dictionary. */
export function labelsOf(field: string): readonly string[] {
  return [...(dictionaryMembers(field)?.keys() ?? [])];
}

type Members = Readonly<Record<'inputs' | 'signatures', ReadonlyMap<string, string>>>;

function membersOf({ signatureInput, signature }: SignatureHeaders): Members {
  const inputs = dictionaryMembers(signatureInput);
  if (inputs === undefined) throw inputError(NO_DICTIONARY);
  const signatures = dictionaryMembers(signature);
  if (signatures === undefined) throw new SignatureError('form', `Signature ${NO_DICTIONARY}`);
  return { inputs, signatures };
}

const NO_DICTIONARY = 'must be a dictionary (RFC 9651) in which each label occurs once';

function foreignProblem({ signatureInput, signature }: SignatureHeaders, { inputs, signatures }: Members) {
  const labels = [...inputs.keys()];
  if (labels.length !== signatures.size || !labels.every((label) => signatures.has(label)))
    return `and Signature must contain the same labels, not ${labels.join(', ')} and ${[...signatures.keys()].join(', ')}`;
  if (labels.filter((label) => label !== LABEL).length > FOREIGN_LABELS_MAX)
    return `must contain at most ${FOREIGN_LABELS_MAX} labels besides ${LABEL}`;
  const foreignChars = Math.max(
    signatureInput.length - (inputs.get(LABEL)?.length ?? 0),
    signature.length - (signatures.get(LABEL)?.length ?? 0),
  );
  if (foreignChars <= FOREIGN_CHARS_MAX) return undefined;
  return `and Signature may contain at most ${FOREIGN_CHARS_MAX} characters besides those of ${LABEL}`;
}

const LINE_BREAK = /[\r\n]/;
const MEMBER = { '@method': 'method', '@target-uri': 'targetUri', 'content-digest': 'contentDigest' } as const;

/** Returns the signature base (RFC 9421, 2.5): one line per component, then the parameters. */
export function signatureBase({ components, params }: SignatureInput, request: SignedRequest): string {
  let base = '';
  for (const component of components) {
    const value = request[MEMBER[component]];
    // A line break could forge another component. HTTP headers can't contain one, but the evidence in a log line can.
    if (LINE_BREAK.test(value)) throw new SignatureError('form', `${component} must not contain a line break`);
    base += `"${component}": ${value}\n`;
  }
  return `${base}"@signature-params": ${params}`;
}

const CREATED_BYTES = 8;

/**
 * Returns a signature's key in a log: `created` as 8 big-endian bytes, then the 64 bytes, as text with one character per byte, which
 * sorts like the bytes. The key is as unique as the signature, which covers `created`, and increases with time, so an index over keys
 * grows at its end.
 */
export function signatureKey({ created, signature }: Pick<ParsedSignature, 'created' | 'signature'>): string {
  const codes = new Array<number>(CREATED_BYTES);
  for (let at = CREATED_BYTES - 1, rest = created; at >= 0; at--, rest = Math.floor(rest / 256)) codes[at] = rest % 256;
  // A call with 64 arguments, because a byte array would allocate a buffer outside the heap for every request.
  return String.fromCharCode(...codes) + String.fromCharCode.apply(null, signature as unknown as number[]);
}

/** Returns the SHA-256 of a signatureKey, also as text. Unlike the signature, it can't be used to test a guess of the signed text. */
export function hiddenSignatureKey(key: string): string {
  return String.fromCharCode(...sha256(Uint8Array.from(key, (char) => char.charCodeAt(0))));
}
export const HIDDEN_KEY_CHARS = 32;

const COVERED = `"${COMPONENTS.join('" "')}"`;
const OPENING = /^ *sig1=\(([^()]*)\)/;
const TYPES = { created: 'number', keyid: 'string', alg: 'string', nonce: 'string', expires: 'number' } as const;
type Parameters = Omit<SignatureInput, 'params' | 'components'> & { readonly alg: string };

/** Accepts RFC 9651's optional spaces; `params` is in canonical form. */
function parseInput(header: string): SignatureInput {
  const [, covered] = OPENING.exec(header) ?? [];
  if (covered === undefined)
    throw inputError(
      `must start with the label sig1 and its components: sig1=(${COVERED});created=…${otherLabels(header)}`,
    );
  const items = covered.split(' ').filter((item) => item !== '');
  if (items.toSorted().join(' ') !== COVERED)
    throw inputError(`must cover exactly ${COVERED}, each once and without parameters, not (${excerpt(covered)})`);

  const { params, parameters } = parseList(header);
  for (const [name, value] of parameters) requireParameter(name, value);
  const { created, keyid, alg, nonce, expires } = Object.fromEntries(parameters) as Partial<Parameters>;
  if (alg !== 'ed25519')
    throw inputError(`must have the parameter alg="ed25519"${alg === undefined ? '' : `, not "${excerpt(alg)}"`}`);
  if (created === undefined) throw inputError('must have the parameter created');
  if (keyid === undefined) throw inputError('must have the parameter keyid');
  // Escapes would give one DID several spellings.
  if (/["\\]/.test(keyid)) throw inputError('must have a keyid without escapes');
  return {
    params,
    components: items.map((item) => item.slice(1, -1) as Component),
    created,
    keyid,
    ...(nonce !== undefined && { nonce }),
    ...(expires !== undefined && { expires }),
  };
}

function parseList(header: string): { readonly params: string; readonly parameters: InnerList[1] } {
  let dictionary: Dictionary;
  let canonical: string;
  try {
    dictionary = parseDictionary(header);
    canonical = serializeDictionary(dictionary);
  } catch (error) {
    throw malformed(error instanceof Error ? error.message : 'unreadable');
  }
  const [, parameters] = dictionary.get('sig1') as InnerList;
  // Only spaces may differ from the canonical form: the library also accepts leading zeros, trailing tabs and repeated names.
  if (dictionary.size === 1 && header.replaceAll(' ', '') === canonical.replaceAll(' ', ''))
    return { params: canonical.slice('sig1='.length), parameters };
  const repeated = Object.keys(TYPES).find((name) => (header.match(new RegExp(`; *${name}=`, 'g'))?.length ?? 0) > 1);
  throw repeated === undefined ? malformed('not canonical') : inputError(`must not repeat the parameter ${repeated}`);
}

function requireParameter(name: string, value: BareItem): void {
  const type = Object.hasOwn(TYPES, name) ? TYPES[name as keyof typeof TYPES] : undefined;
  if (type === undefined)
    throw inputError(`has the unknown parameter ${excerpt(name)}; known: ${Object.keys(TYPES).join(', ')}`);
  const isInteger = Number.isInteger(value) && (value as number) >= 0;
  if (typeof value !== 'string' && !isInteger) throw malformed(`the value of ${name}`);
  if (type === 'number' && !isInteger)
    throw inputError(`must have ${name} as an integer (Unix seconds), not a quoted string`);
  if (type === 'string' && isInteger) throw inputError(`must have ${name} as a quoted string`);
}

function malformed(problem: string): SignatureError {
  return inputError(
    `must have parameters of the form ;name="string" or ;name=integer (0 or more, up to 15 digits): ${problem}`,
  );
}

function inputError(problem: string): SignatureError {
  return new SignatureError('form', `Signature-Input ${problem}`);
}

const EXCERPT_CHARS = 120;

function excerpt(text: string): string {
  return text.length > EXCERPT_CHARS ? `${text.slice(0, EXCERPT_CHARS)}…` : text;
}

// The service's profile of HTTP message signatures (RFC 9421): one signature `sig1` over method, URL and body digest.
// The headers are hostile input: whatever is not exactly this profile is refused, with a message that says what to mend.
import { decodeSignature } from './base64.ts';
import { type Component, parseSignatureInput, type SignatureInput } from './signature-input.ts';
import { SignatureRefusal } from './signature-refusal.ts';

/** Both header values as received; several lines of one header come joined by a comma and are refused. */
export interface SignatureHeaders {
  readonly signatureInput: string;
  readonly signature: string;
}

export interface ParsedSignature extends SignatureInput {
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

export interface SignedRequest {
  readonly method: string;
  /** The URL as the client used it. */
  readonly targetUri: string;
  /** The value of the Content-Digest header, as received. */
  readonly contentDigest: string;
}

/** What the two headers say; throws a SignatureRefusal of step `form` for anything outside the profile. */
export function parseSignature({ signatureInput, signature }: SignatureHeaders): ParsedSignature {
  return { ...parseSignatureInput(signatureInput), signature: parseSignatureValue(signature) };
}

const SIGNATURE = /^ *sig1=:([^:]*): *$/;

function parseSignatureValue(header: string): Uint8Array {
  const [, base64] = SIGNATURE.exec(header) ?? [];
  if (base64 === undefined)
    throw new SignatureRefusal('form', 'Signature must be sig1=:<base64>: and hold one signature only');
  const bytes = decodeSignature(base64);
  if (bytes !== undefined) return bytes;
  throw new SignatureRefusal('form', 'Signature must hold 64 bytes in base64: standard alphabet, 86 digits and ==');
}

/** The text that is signed, as RFC 9421, section 2.5 builds it: one line for each component, then the parameters. */
export function signatureBase(parsed: SignatureInput, request: SignedRequest): string {
  let base = '';
  for (const component of parsed.components) base += `"${component}": ${componentValue(component, request)}\n`;
  return `${base}"@signature-params": ${parsed.params}`;
}

function componentValue(component: Component, request: SignedRequest): string {
  const value = request[MEMBER[component]];
  // A line break could pass for a further component. HTTP carries none, but the evidence in a log line might.
  if (LINE_BREAK.test(value)) throw new SignatureRefusal('form', `${component} must not hold a line break`);
  return value;
}

const LINE_BREAK = /[\r\n]/;
const MEMBER = { '@method': 'method', '@target-uri': 'targetUri', 'content-digest': 'contentDigest' } as const;

// Parses the Signature-Input header: a strict subset of RFC 8941 and RFC 9421, by hand because every request pays for it.
// Spaces are taken wherever RFC 8941 has them in an inner list; `params` is then, as RFC 9421 wants it, the canonical form.
import { SignatureRefusal } from './signature-refusal.ts';

const COMPONENTS = ['@method', '@target-uri', 'content-digest'] as const;
export type Component = (typeof COMPONENTS)[number];

export interface SignatureInput {
  /** The value of "@signature-params": components and parameters in the order sent, canonically serialised. */
  readonly params: string;
  /** All three, in the order sent. */
  readonly components: readonly Component[];
  /** Seconds since 1970-01-01T00:00:00Z. */
  readonly created: number;
  /** The signer's DID as sent, not yet parsed. */
  readonly keyid: string;
  readonly nonce?: string;
  /** Seconds since 1970-01-01T00:00:00Z. */
  readonly expires?: number;
}

/** What a Signature-Input header says; throws a SignatureRefusal of step `form` for anything outside the profile. */
export function parseSignatureInput(header: string): SignatureInput {
  return parseUsual(header) ?? parseAny(header);
}

// As most clients write it: canonical already, and read at one go in a third of the time.
const USUAL =
  /^sig1=(\("@method" "@target-uri" "content-digest"\);created=(0|[1-9]\d{0,14});keyid="([ !#-[\]-~]*)";alg="ed25519"(?:;nonce="([ !#-[\]-~]*)")?)$/;

function parseUsual(header: string): SignatureInput | undefined {
  const [, params, created, keyid, nonce] = USUAL.exec(header) ?? [];
  if (params === undefined || keyid === undefined) return undefined;
  const components = COMPONENTS;
  return nonce === undefined
    ? { params, components, created: Number(created), keyid }
    : { params, components, created: Number(created), keyid, nonce };
}

function parseAny(header: string): SignatureInput {
  const [opening, list] = OPENING.exec(header) ?? [];
  if (opening === undefined || list === undefined)
    throw refusal(`must start with the label sig1 and its components: sig1=(${COVERED});created=…`);
  const components = parseComponents(list);
  const parameters = parseParameters(header, opening.length);
  if (parameters.get('alg') !== '"ed25519"') throw refusal('must have the parameter alg="ed25519"');
  const nonce = readString('nonce', parameters);
  const expires = readInteger('expires', parameters);
  return {
    params: serialise(components, parameters),
    components,
    created: readInteger('created', parameters) ?? missing('created'),
    keyid: readKeyid(parameters),
    ...(nonce === undefined ? {} : { nonce }),
    ...(expires === undefined ? {} : { expires }),
  };
}

const COVERED = quoted(COMPONENTS);
const OPENING = /^ *sig1=\(([^()]*)\)/;

function parseComponents(list: string): readonly Component[] {
  const items = list.split(' ').filter((item) => item !== '');
  const components = COMPONENTS.filter((component) => items.includes(`"${component}"`));
  const isExact = items.length === COMPONENTS.length && components.length === COMPONENTS.length;
  if (!isExact)
    throw refusal(`must cover exactly ${COVERED}, each once and without parameters, not (${excerpt(list)})`);
  return items.map((item) => item.slice(1, -1) as Component);
}

const NAMES = ['created', 'keyid', 'alg', 'nonce', 'expires'] as const;
type ParameterName = (typeof NAMES)[number];
/** The values as written: quoted strings and integers have one form only. In the order sent. */
type Parameters = ReadonlyMap<ParameterName, string>;

const PARAMETER = /; *([a-z*][a-z0-9_\-.*]*)=("(?:[ !#-[\]-~]|\\["\\])*"|0|[1-9]\d{0,14})/y;
const END = / *$/y;

function parseParameters(header: string, start: number): Parameters {
  const parameters = new Map<ParameterName, string>();
  for (let at = start; !isMatchAt(END, header, at); at = PARAMETER.lastIndex) {
    PARAMETER.lastIndex = at;
    const [, name, value] = PARAMETER.exec(header) ?? [];
    if (name === undefined || value === undefined) throw unreadable(header.slice(at));
    if (!isParameterName(name)) throw refusal(`has the unknown parameter ${excerpt(name)}; known: ${NAMES.join(', ')}`);
    if (parameters.has(name)) throw refusal(`must not repeat the parameter ${name}`);
    parameters.set(name, value);
  }
  return parameters;
}

function isMatchAt(sticky: RegExp, text: string, at: number): boolean {
  sticky.lastIndex = at;
  return sticky.test(text);
}

function isParameterName(name: string): name is ParameterName {
  return (NAMES as readonly string[]).includes(name);
}

function readKeyid(parameters: Parameters): string {
  const keyid = readString('keyid', parameters) ?? missing('keyid');
  // Escapes would give one DID several spellings.
  if (parameters.get('keyid') !== `"${keyid}"`) throw refusal('must have a keyid without escapes');
  return keyid;
}

function readString(name: ParameterName, parameters: Parameters): string | undefined {
  const value = parameters.get(name);
  if (value === undefined) return undefined;
  if (!value.startsWith('"')) throw refusal(`must have ${name} as a quoted string`);
  return value.slice(1, -1).replace(/\\(.)/g, '$1');
}

function readInteger(name: ParameterName, parameters: Parameters): number | undefined {
  const value = parameters.get(name);
  if (value === undefined) return undefined;
  if (value.startsWith('"')) throw refusal(`must have ${name} as an integer (Unix seconds), not a quoted string`);
  return Number(value);
}

function serialise(components: readonly Component[], parameters: Parameters): string {
  let params = `(${quoted(components)})`;
  for (const [name, value] of parameters) params += `;${name}=${value}`;
  return params;
}

function quoted(components: readonly Component[]): string {
  return `"${components.join('" "')}"`;
}

function missing(name: ParameterName): never {
  throw refusal(`must have the parameter ${name}`);
}

function unreadable(rest: string): SignatureRefusal {
  if (/^[ \t]*,/.test(rest)) return refusal('must hold one signature only');
  return refusal(`must go on with ;name="string" or ;name=integer (0 or more, up to 15 digits) at ${excerpt(rest)}`);
}

const EXCERPT_CHARS = 60;

function excerpt(text: string): string {
  return text.length > EXCERPT_CHARS ? `${text.slice(0, EXCERPT_CHARS)}…` : text;
}

function refusal(problem: string): SignatureRefusal {
  return new SignatureRefusal('form', `Signature-Input ${problem}`);
}

// JSON that all readers parse to the same values: untrusted text is parsed strictly (src/http/README.md), and values are written
// canonically (RFC 8785).
import { ForumError, invalid } from './errors.ts';
import { type JsonObject, type JsonValue, withCommas } from './values.ts';

/**
 * Serialises a JSON value canonically: members sorted by UTF-16 code units, ECMAScript numbers and strings, no white space.
 * The value must be free of cycles, non-finite numbers and lone surrogates, as parseJson ensures. Omits undefined members.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const names = Object.keys(value);
  // Most of the service's own objects are already sorted.
  for (let index = 1; index < names.length; index++) {
    if ((names[index - 1] as string) <= (names[index] as string)) continue;
    names.sort();
    break;
  }
  let members = '';
  for (const name of names) {
    const member: unknown = (value as Record<string, unknown>)[name];
    if (member === undefined) continue;
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`;
  }
  return `{${members}}`;
}

/** The maximum nesting, including the outermost level. */
export const JSON_DEPTH_MAX = 32;

/**
 * Parses text as JSON. Throws FORUM_ERR_VALIDATION for malformed text, duplicate member names, nesting over 32 levels, non-finite
 * numbers, integers beyond ±(2^53 − 1), lone surrogates, and more values than `valuesMax`. Errors call the value `name`; for malformed
 * text, the cause is a SyntaxError.
 */
export function parseJson(text: string, valuesMax = Number.POSITIVE_INFINITY, name = 'body'): JsonValue {
  const membersWritten = requireBoundedJson(text, valuesMax);
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    const detail = `not valid JSON: ${error instanceof Error ? error.message : 'malformed'}`;
    throw new ForumError('FORUM_ERR_VALIDATION', detail, { cause: error });
  }
  const found = { members: 0 };
  const problem = valueProblem(value, found);
  if (problem !== undefined) throw invalid(`${name}${problem}`);
  if (found.members !== membersWritten) throw invalid('an object contains the same member name twice');
  return value;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Throws FORUM_ERR_VALIDATION if the JSON has more values or more than 32 levels, before it takes memory (two bytes of an empty object
 * become about sixty) and before a recursive function reads it. Returns the number of members of all objects.
 */
export function requireBoundedJson(text: string, valuesMax: number): number {
  let depth = 0;
  let members = 0;
  // A value follows each comma and each opening bracket.
  let values = 1;
  let backslashes = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        // Skip to the end of the string, a quote after an even number of backslashes.
        do {
          at = text.indexOf('"', at + 1);
          if (at === -1) return members;
          for (backslashes = 0; text.charCodeAt(at - 1 - backslashes) === BACKSLASH; ) backslashes++;
        } while (backslashes % 2 === 1);
        break;
      case COLON:
        members++;
        break;
      case COMMA:
        values++;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        values++;
        if (++depth > JSON_DEPTH_MAX) throw invalid(`nesting is deeper than ${JSON_DEPTH_MAX} levels`);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--;
        break;
    }
    if (values > valuesMax) throw invalid(`it contains more than ${withCommas(valuesMax)} values`);
  }
  return members;
}

/** Returns the path and the problem of an invalid value, e.g. `.a[1]: the number is not finite`. Counts the visited members. */
function valueProblem(value: JsonValue, found: { members: number }): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : ': a lone surrogate is not Unicode';
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return ': the number is not finite';
    return Number.isInteger(value) && !Number.isSafeInteger(value)
      ? ': integers must be within ±(2^53 − 1)'
      : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const isArray = Array.isArray(value);
  for (const name of Object.keys(value)) {
    if (!name.isWellFormed()) return ': a member name contains a lone surrogate';
    if (!isArray) found.members++;
    const problem = valueProblem((value as JsonObject)[name] as JsonValue, found);
    if (problem !== undefined) return isArray ? `[${name}]${problem}` : `.${name}${problem}`;
  }
  return undefined;
}

const SIGNIFICANT_DIGITS_MAX = 17;
/** Matches strings, numbers and brackets of well-formed JSON. */
const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?|[{}[\]]/g;

/**
 * Requires that parsers in all languages read the same numbers from a new request's body: at most 17 significant digits, no underflow
 * to 0, and exact integers except in the member `opaque`, which is kept as sent. `1e3` is an exact integer, `1.0000000000000001` is not.
 * The text must have passed parseJson. Throws FORUM_ERR_VALIDATION. Lines of earlier releases may break this rule, so the auditor does
 * not apply it.
 */
export function requireExactNumbers(text: string, opaque: string): void {
  // If nothing matches, no number has an exponent or more than 15 significant digits, so all are exact.
  if (!/\d[\d.]{15}|\d[eE][-+\d]/.test(text)) return;
  let depth = 0;
  let member = '';
  for (const [token, colon, whole, fraction = '', exponent = '0'] of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (colon !== undefined && depth === 1) member = token.slice(1, token.lastIndexOf('"'));
    if (whole === undefined) continue;
    const digits = (whole + fraction).replace(/^0+/, '');
    const value = Number(token);
    const shift = Number(exponent) - fraction.length;
    const isExact = shift >= 0 || digits.slice(shift).replaceAll('0', '') === '';
    const problem =
      digits.length > SIGNIFICANT_DIGITS_MAX
        ? `has more than ${SIGNIFICANT_DIGITS_MAX} significant digits`
        : value === 0 && digits !== ''
          ? 'is not 0 and would become 0'
          : member !== opaque && Number.isInteger(value) && !isExact
            ? 'must be written as an exact integer'
            : undefined;
    if (problem !== undefined) throw invalid(`${member || 'body'}: the number ${token.slice(0, 40)} ${problem}`);
  }
}

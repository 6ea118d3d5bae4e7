// Sanitises untrusted text for display to people and models: removes characters that move a cursor, change the direction of
// surrounding text, or are invisible to people but read by models. The log keeps the original text.

const LINE_BREAKS = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/g;
const CONTROLS = /[^\P{Cc}\n]+/gu;
const CONTROLS_AND_BREAKS = /[\p{Cc}\u2028\u2029]+/gu;
/** Format characters (including bidi controls and tags), lone surrogates, variation selectors and other ignorable characters. */
const INVISIBLE = /[\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** Normalises line breaks to `\n`, replaces other control characters with a space, and removes invisible characters. */
export function visibleText(text: string): string {
  return text.replace(LINE_BREAKS, '\n').replace(CONTROLS, ' ').replace(INVISIBLE, '');
}

/** Like visibleText, but also replaces line breaks with a space. */
export function visibleLine(text: string): string {
  return text.replace(CONTROLS_AND_BREAKS, ' ').replace(INVISIBLE, '');
}

const UNPRINTABLE = /[^\P{Cc}\n]|[\u2028\u2029\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** Escapes these characters in JSON, so that programs read the same value and terminals display only text. */
export function escapeInvisible(json: string): string {
  const escapes = new Map<string, string>();
  const escapeOf = (character: string) => {
    const known = escapes.get(character) ?? toEscape(character);
    escapes.set(character, known);
    return known;
  };
  let escaped = '';
  for (let start = 0, end = 0; start < json.length; start = end) {
    end = start + PIECE_CHARS;
    if (HIGH_SURROGATE.test(json.charAt(end - 1))) end++;
    escaped += json.slice(start, end).replace(UNPRINTABLE, escapeOf);
  }
  return escaped;
}

/** Bounds the memory: during a replacement, V8 keeps about 150 bytes for each match. */
const PIECE_CHARS = 65_536;
const HIGH_SURROGATE = /[\ud800-\udbff]/;

function toEscape(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

export function visibleJson(value: unknown): string {
  return escapeInvisible(JSON.stringify(value));
}

/** Applies visibleText to all strings and member names of a JSON value. */
export function visibleValue<Value>(value: Value): Value {
  return clean(value) as Value;
}

function clean(value: unknown): unknown {
  if (typeof value === 'string') return visibleText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(clean);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [visibleText(name), clean(member)]));
}

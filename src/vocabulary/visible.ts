// Text of others as people and models may be shown it: nothing in it moves a cursor, changes the direction of what is around it, or
// is read by a model and not seen by a person. What was written stays in the log; this is for showing it.

const LINE_BREAKS = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/g;
const CONTROLS = /[^\P{Cc}\n]+/gu;
const CONTROLS_AND_BREAKS = /[\p{Cc}\u2028\u2029]+/gu;
/** Format characters, bidi controls and tags among them, halves of surrogate pairs, variation selectors and other ignorable ones. */
const INVISIBLE = /[\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** The text with its lines: every line break is `\n`, other controls are a space, and what is invisible is left out. */
export function visibleText(text: string): string {
  return text.replace(LINE_BREAKS, '\n').replace(CONTROLS, ' ').replace(INVISIBLE, '');
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return text.replace(CONTROLS_AND_BREAKS, ' ').replace(INVISIBLE, '');
}

const UNPRINTABLE = /[^\P{Cc}\n]|[\u2028\u2029\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** JSON in which these characters are escaped: a program reads the same value from it, and a terminal shows only text. */
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

/** V8 keeps every match of a replacement until its end, some 150 bytes for each. */
const PIECE_CHARS = 65_536;
const HIGH_SURROGATE = /[\ud800-\udbff]/;

function toEscape(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

export function visibleJson(value: unknown): string {
  return escapeInvisible(JSON.stringify(value));
}

/** A value of JSON whose texts, names of members included, are all visible. */
export function visibleValue<Value>(value: Value): Value {
  return clean(value) as Value;
}

function clean(value: unknown): unknown {
  if (typeof value === 'string') return visibleText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(clean);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [visibleText(name), clean(member)]));
}

// A dictionary of structured fields (RFC 9651, 3.2) as text: each member exactly as it was sent.
import { parseDictionary } from 'structured-headers';

/** Members by key, in the order sent, without the spaces around; undefined if the field is no dictionary or a key occurs twice. */
export function dictionaryMembers(field: string): ReadonlyMap<string, string> | undefined {
  const texts = splitAtCommas(field);
  const keys = keysOf(field);
  if (keys.length !== texts.length) return undefined;
  const members = new Map(keys.map((key, index) => [key, texts[index] as string]));
  // Members are split without the library that parsed them: both must have met the same ones.
  for (const [key, text] of members)
    if (!text.startsWith(key) || !/^(?:[=;]|$)/.test(text.slice(key.length))) return undefined;
  return members;
}

function keysOf(field: string): readonly string[] {
  // RFC 9651 has spaces at the end of a field; the library takes tabs too.
  if (/\t *$/.test(field)) return [];
  try {
    return [...parseDictionary(field).keys()];
  } catch {
    return [];
  }
}

/** Splits at the commas outside strings: nothing else in a dictionary may hold one. */
function splitAtCommas(field: string): readonly string[] {
  const texts: string[] = [];
  let start = 0;
  let isString = false;
  let hasEscapes = true;
  for (let at = 0; at < field.length; at++) {
    const character = field.charAt(at);
    if (character === '"') {
      // A display string (%"…") has %-encodings, and a backslash stands for itself.
      if (!isString) hasEscapes = field[at - 1] !== '%';
      isString = !isString;
    } else if (character === '\\' && isString && hasEscapes) at++;
    else if (character === ',' && !isString) {
      texts.push(field.slice(start, at));
      start = at + 1;
    }
  }
  return [...texts, field.slice(start)].map(trimBlanks);
}

/** By hand: a pattern for blanks at the end takes the square of those in between. */
function trimBlanks(text: string): string {
  const isBlank = (at: number) => text[at] === ' ' || text[at] === '\t';
  let [start, end] = [0, text.length];
  while (start < end && isBlank(start)) start++;
  while (end > start && isBlank(end - 1)) end--;
  return text.slice(start, end);
}

// Parses structured-field dictionaries (RFC 9651, 3.2), keeping each member's text exactly as sent.
import { parseDictionary } from 'structured-headers';

/** Returns the members' trimmed texts by key, in the order sent; undefined if the field is not a dictionary or repeats a key. */
export function dictionaryMembers(field: string): ReadonlyMap<string, string> | undefined {
  const texts = splitAtCommas(field);
  const keys = keysOf(field);
  if (keys.length !== texts.length) return undefined;
  const members = new Map(keys.map((key, index) => [key, texts[index] as string]));
  // The library's parser and splitAtCommas must find the same members.
  for (const [key, text] of members)
    if (!text.startsWith(key) || !/^(?:[=;]|$)/.test(text.slice(key.length))) return undefined;
  return members;
}

function keysOf(field: string): readonly string[] {
  // RFC 9651 allows only spaces at the end of a field; the library also accepts tabs.
  if (/\t *$/.test(field)) return [];
  try {
    return [...parseDictionary(field).keys()];
  } catch {
    return [];
  }
}

/** Splits at commas outside strings; in a dictionary, only strings and separators contain commas. */
function splitAtCommas(field: string): readonly string[] {
  const texts: string[] = [];
  let start = 0;
  let isString = false;
  let hasEscapes = true;
  for (let at = 0; at < field.length; at++) {
    const character = field.charAt(at);
    if (character === '"') {
      // In a display string (%"…"), backslashes are not escapes.
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

/** Avoids a regular expression, which would take quadratic time on trailing blanks. */
function trimBlanks(text: string): string {
  const isBlank = (at: number) => text[at] === ' ' || text[at] === '\t';
  let [start, end] = [0, text.length];
  while (start < end && isBlank(start)) start++;
  while (end > start && isBlank(end - 1)) end--;
  return text.slice(start, end);
}

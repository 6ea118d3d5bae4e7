// JSON Canonicalization Scheme (RFC 8785): one byte sequence for one value, whoever writes it.

/**
 * Serialises a JSON value canonically: members sorted by UTF-16 code units, ECMAScript numbers and strings, no white space.
 * The value must be free of cycles, non-finite numbers and lone surrogates, as parseJson makes sure; undefined members are left out.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  return canonicalObject(value);
}

function canonicalObject(value: object): string {
  let members = '';
  for (const name of sortedNames(value)) {
    const member: unknown = (value as Record<string, unknown>)[name];
    if (member === undefined) continue;
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`;
  }
  return `{${members}}`;
}

/** Objects of our own are mostly written in order. */
function sortedNames(value: object): readonly string[] {
  const names = Object.keys(value);
  for (let index = 1; index < names.length; index++) {
    if ((names[index - 1] as string) > (names[index] as string)) return names.sort();
  }
  return names;
}

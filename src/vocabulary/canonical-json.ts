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
  for (const name of Object.keys(value).sort()) {
    const member: unknown = (value as Record<string, unknown>)[name];
    if (member === undefined) continue;
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`;
  }
  return `{${members}}`;
}

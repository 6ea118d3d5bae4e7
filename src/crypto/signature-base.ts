// Builds the signature base of HTTP message signatures (RFC 9421, 2.5).

const LINE_BREAK = /[\r\n]/;

/** `fields` are component identifiers with values. Throws if a value contains a line break, which could forge another component. */
export function signatureBaseOf(fields: readonly (readonly [identifier: string, value: string])[], params: string) {
  let base = '';
  for (const [identifier, value] of fields) {
    if (LINE_BREAK.test(value)) throw new Error(`${identifier} must not contain a line break`);
    base += `${identifier}: ${value}\n`;
  }
  return `${base}"@signature-params": ${params}`;
}

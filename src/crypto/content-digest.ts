// The Content-Digest header field (RFC 9530): made of a body, and checked against one.
import { hash } from 'node:crypto';

/** Read `ok`: the object itself is always truthy. */
export type DigestVerdict = { readonly ok: true } | { readonly ok: false; readonly problem: string };

/** The field value `sha-256=:<base64>:` of a body; the empty body has one too. */
export function contentDigestOf(body: Uint8Array): string {
  return `sha-256=:${hash('sha256', body, 'base64')}:`;
}

/** Whether the field holds the body's SHA-256 digest, exactly once; other algorithms beside it are ignored. */
export function hasDigest(header: string, body: Uint8Array): DigestVerdict {
  const expected = contentDigestOf(body);
  return header === expected ? RIGHT : findDigest(header, expected);
}

const RIGHT: DigestVerdict = { ok: true };

// A member of the dictionary. RFC 9530 makes every value a byte sequence, so no comma stands within one.
const MEMBER = /^([a-z*][a-z0-9_\-.*]*)=:[A-Za-z0-9+/]*={0,2}:$/;

function findDigest(header: string, expected: string): DigestVerdict {
  const members = header.split(',').map(trimWhitespace);
  const malformed = members.find((member) => !MEMBER.test(member));
  if (malformed !== undefined) return wrong(`Content-Digest must be sha-256=:<base64>:, not ${excerpt(malformed)}`);
  const digests = members.filter((member) => member.startsWith('sha-256='));
  if (digests.length !== 1) return wrong(`Content-Digest must hold sha-256 once, not ${digests.length} times`);
  // Compared as text, so that the base64 must be canonical.
  return digests[0] === expected ? RIGHT : wrong('Content-Digest is not the SHA-256 of the body as received');
}

/** Strips spaces and tabs only, unlike String.trim, and in linear time, unlike a regular expression. */
function trimWhitespace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isWhitespace(text[start])) start++;
  while (end > start && isWhitespace(text[end - 1])) end--;
  return text.slice(start, end);
}

function isWhitespace(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}

const EXCERPT_CHARS = 60;

function excerpt(text: string): string {
  return JSON.stringify(text.length > EXCERPT_CHARS ? `${text.slice(0, EXCERPT_CHARS)}…` : text);
}

function wrong(problem: string): DigestVerdict {
  return { ok: false, problem };
}

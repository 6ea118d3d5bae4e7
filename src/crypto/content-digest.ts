// The Content-Digest header field (RFC 9530): computed from a body and checked against one.
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

// A member of the dictionary. RFC 9530 makes every value a byte sequence, so it holds no comma.
const MEMBER = /^[ \t]*([a-z*][a-z0-9_\-.*]*=:[A-Za-z0-9+/]*={0,2}:)[ \t]*$/;
const EXCERPT_CHARS = 60;

function findDigest(header: string, expected: string): DigestVerdict {
  const digests: string[] = [];
  for (const text of header.split(',')) {
    const [, member] = MEMBER.exec(text) ?? [];
    if (member === undefined)
      return wrong(
        `Content-Digest must be sha-256=:<base64>:, not ${JSON.stringify(text.trim().slice(0, EXCERPT_CHARS))}`,
      );
    if (member.startsWith('sha-256=')) digests.push(member);
  }
  if (digests.length !== 1) return wrong(`Content-Digest must hold sha-256 once, not ${digests.length} times`);
  // Compared as text, so that the base64 must be canonical.
  return digests[0] === expected ? RIGHT : wrong('Content-Digest is not the SHA-256 of the body as received');
}

function wrong(problem: string): DigestVerdict {
  return { ok: false, problem };
}

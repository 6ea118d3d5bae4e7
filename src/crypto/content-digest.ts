// The Content-Digest header field (RFC 9530).
import { sha256 } from '@noble/hashes/sha2.js';

/** Returns `sha-256=:<base64>:` for a body, which may be empty. */
export function contentDigestOf(body: Uint8Array): string {
  return `sha-256=:${btoa(String.fromCharCode(...sha256(body)))}:`;
}

// Every value is a byte sequence (RFC 9530), so it contains no comma.
const MEMBER = /^[ \t]*([a-z*][a-z0-9_\-.*]*=:[A-Za-z0-9+/]*={0,2}:)[ \t]*$/;
const EXCERPT_CHARS = 60;

/** Returns undefined if the field contains `expected` exactly once; ignores other algorithms. */
export function digestProblem(header: string, expected: string): string | undefined {
  if (header === expected) return undefined;
  const digests: string[] = [];
  for (const text of header.split(',')) {
    const [, member] = MEMBER.exec(text) ?? [];
    const excerpt = JSON.stringify(text.trim().slice(0, EXCERPT_CHARS));
    if (member === undefined) return `Content-Digest must be sha-256=:<base64>:, not ${excerpt}`;
    if (member.startsWith('sha-256=')) digests.push(member);
  }
  if (digests.length !== 1) return `Content-Digest must contain sha-256 once, not ${digests.length} times`;
  // Compared as text, so the base64 must be canonical.
  return digests[0] === expected ? undefined : 'Content-Digest is not the SHA-256 of the body as received';
}

// The request target as it came over the wire: signatures cover the raw text, never a normalised URL (RFC 9421, 2.2.2).
import type { IncomingMessage } from 'node:http';
import { ForumError } from '../vocabulary/errors.ts';
import type { ForumContext } from './context.ts';
import { header } from './header.ts';

// Without a backslash, which URL parsers take for a slash, and without a fragment, which is no part of a target.
const PRINTABLE_ASCII = /^[!"$-[\]-~]*$/;
const HOST = /^[\w.:[\]-]+$/;
/** What every URL parser reads alike: not worth another look. */
const ORDINARY_HOST = /^[\w.-]+(:[1-5]?\d{1,4})?$/;
const ORDINARY_TARGET = /^\/[\w\-/?=&.]*$/;
/** Of these Node takes the first line and drops the others, another reader may do otherwise. */
const SINGLE_HEADERS: readonly string[] = ['host', 'content-type'];

/**
 * Refuses what two readers could read in two ways: a header twice that may be there once, an absolute-form or non-ASCII
 * target. Throws FORUM_ERR_VALIDATION.
 */
export function requirePlainTarget(incoming: IncomingMessage): void {
  const target = incoming.url ?? '';
  const host = incoming.headers.host ?? '';
  for (const name of SINGLE_HEADERS) requireSingle(name, incoming.rawHeaders);
  if (ORDINARY_HOST.test(host) && ORDINARY_TARGET.test(target)) return;
  if (!target.startsWith('/')) throw refused('the request target must be a path: absolute-form is not accepted');
  if (!PRINTABLE_ASCII.test(target)) throw refused('the request target must be printable ASCII without \\ and #');
  if (HOST.test(host) && URL.canParse(`http://${host}${target}`)) return;
  throw refused('the Host header or the request target is malformed');
}

function requireSingle(single: string, rawHeaders: readonly string[]): void {
  let lines = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === single.length && name.toLowerCase() === single) lines++;
  }
  if (lines > 1) throw refused(`the request has two ${single} headers`);
}

/** The URLs that the client may have used, most likely first. */
export function targetUris(c: ForumContext, publicUrls: readonly string[]): readonly string[] {
  const target = rawTarget(c);
  const host = header(c, 'host') ?? '';
  if (publicUrls.length === 0) return [`http://${host}${target}`];
  const likely = publicUrls.filter((url) => url.endsWith(`//${host}`));
  return [...new Set([...likely, ...publicUrls])].map((url) => url + target);
}

function rawTarget(c: ForumContext): string {
  const raw = c.env.incoming?.url;
  if (raw !== undefined) return raw;
  const { pathname, search } = new URL(c.req.url);
  return pathname + search;
}

function refused(detail: string): ForumError {
  return new ForumError('FORUM_ERR_VALIDATION', detail);
}

// Rejects requests by their head: those that two parsers could read differently, and heads that are too large.
import type { IncomingMessage } from 'node:http';
import { domainToUnicode } from 'node:url';
import { parseTarget } from '../crypto/http-signature.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';

export const VERSIONS = 'only HTTP/1.1 and HTTP/1.0 are supported';

/** The target has no backslash, which URL parsers take for a slash, and no fragment, which is not part of a target. */
const TARGET = /^\/[!"$-[\]-~]*$/;

/** Checks the heads of requests to one server. */
export class RequestHeads {
  readonly #bytesMax: number;
  readonly #hosts = new AcceptedHosts();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * The first problem of the head: another version of HTTP, too many bytes, two Host or Content-Type headers (Node takes the first,
   * others may not), an absolute-form or non-ASCII target, a missing or malformed host.
   */
  problemOf({ method = '', url: target = '', httpVersion, headers, rawHeaders }: IncomingMessage) {
    if (httpVersion !== '1.1' && httpVersion !== '1.0') return invalid(VERSIONS);
    let bytes = `${method} ${target} HTTP/1.1\r\n\r\n`.length;
    let hostLines = 0;
    let types = 0;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index] as string;
      bytes += name.length + (rawHeaders[index + 1] as string).length + ': \r\n'.length;
      if (name.length === 4 && name.toLowerCase() === 'host') hostLines++;
      else if (name.length === 12 && name.toLowerCase() === 'content-type') types++;
    }
    if (bytes > this.#bytesMax) return this.tooLarge();
    if (hostLines > 1) return invalid('the request has two host headers');
    if (types > 1) return invalid('the request has two content-type headers');
    if (!target.startsWith('/')) return invalid('the request target must be a path: absolute-form is not accepted');
    if (!TARGET.test(target)) return invalid('the request target must be printable ASCII without \\ and #');
    return this.#hosts.has(headers.host ?? '') ? undefined : invalid('the Host header is missing or malformed');
  }

  tooLarge(): ForumError {
    const detail = `the request head is too large: at most ${this.#bytesMax} bytes are accepted`;
    return new ForumError('FORUM_ERR_TOO_LARGE', detail);
  }
}

/** The status of a request that is rejected before its body is read. */
export function statusOfHead({ code, status }: ForumError): number {
  return code === 'FORUM_ERR_TOO_LARGE' ? 431 : status;
}

/** The Host has no empty labels. A name has at most 253 characters, a port 6 with its colon. */
const HOST = /^(?!\.|.*\.\.)[\w.:[\]-]{1,259}$/;
const HOSTS_KEPT_MAX = 100;

/**
 * Knows whether every URL parser accepts a host, those of auditors included. Parsing costs more than all other checks together, so
 * accepted hosts are kept.
 */
class AcceptedHosts {
  readonly #kept = new Set<string>();

  has(host: string): boolean {
    if (this.#kept.has(host)) return true;
    const name = HOST.test(host) ? parseTarget(`http://${host}/`)?.hostname : undefined;
    // The parser of Node 24 accepts internationalised labels that cannot be decoded.
    if (name === undefined || /(^|\.)xn--/.test(domainToUnicode(name))) return false;
    if (this.#kept.size >= HOSTS_KEPT_MAX) this.#kept.clear();
    this.#kept.add(host);
    return true;
  }
}

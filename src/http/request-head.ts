// Rejects requests whose heads are too large, or that two parsers could read differently.
import type { IncomingMessage } from 'node:http';
import { domainToUnicode } from 'node:url';
import { parseTarget } from '../crypto/http-signature.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';

export const VERSIONS = 'only HTTP/1.1 and HTTP/1.0 are supported';

/** Excludes a backslash, which URL parsers treat as a slash, and a fragment, which is not part of a target. */
const TARGET = /^\/[!"$-[\]-~]*$/;

/** Excludes empty labels. A name has at most 253 characters, and a port has at most 6 with its colon. */
const HOST = /^(?!\.|.*\.\.)[\w.:[\]-]{1,259}$/;
const HOSTS_CACHED_MAX = 100;

/** Checks the heads of requests to one server. */
export class RequestHeads {
  readonly #bytesMax: number;
  /** Accepted values of Host: parsing costs more than all other checks together. */
  readonly #hosts = new Set<string>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Returns the error for the first problem of the head: an unsupported HTTP version, too many bytes, two Host or Content-Type headers
   * (Node uses the first, others may not), an absolute-form or non-ASCII target, a missing or malformed Host.
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
    if (!TARGET.test(target)) return invalid('the request target must be printable ASCII without \\ or #');
    return this.#acceptsHost(headers.host ?? '') ? undefined : invalid('the Host header is missing or malformed');
  }

  tooLarge(): ForumError {
    const detail = `the request head is too large: at most ${this.#bytesMax} bytes are accepted`;
    return new ForumError('FORUM_ERR_TOO_LARGE', detail);
  }

  /** Accepts hosts that every URL parser accepts, including those of auditors. */
  #acceptsHost(host: string): boolean {
    if (this.#hosts.has(host)) return true;
    const name = HOST.test(host) ? parseTarget(`http://${host}/`)?.hostname : undefined;
    // Node 24's parser accepts internationalised labels that cannot be decoded.
    if (name === undefined || /(^|\.)xn--/.test(domainToUnicode(name))) return false;
    if (this.#hosts.size >= HOSTS_CACHED_MAX) this.#hosts.clear();
    this.#hosts.add(host);
    return true;
  }
}

/** Returns the status for a request that is rejected before its body is read. */
export function statusOfHead({ code, status }: ForumError): number {
  return code === 'FORUM_ERR_TOO_LARGE' ? 431 : status;
}

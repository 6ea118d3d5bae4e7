// Sends one POST to a callback. Invariants:
//
// - The connection goes to an address that was checked for this request: the name is resolved here, and the socket connects to the address.
// - Redirects are not followed, and proxy settings of the environment are ignored.
// - Resolving, connecting, TLS and the response together take at most 5 s, and at most 16 KB are read.
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { AddressLimits, type RequestKind } from './address-limits.ts';
import { AddressNotAllowed, type AddressRules, addressIn, LOCALHOST, requireAllowed } from './addresses.ts';
import type { Resolve } from './resolver.ts';

const POST_MS_MAX = 5_000;
const RESPONSE_BYTES_MAX = 16_384;

export interface PostOptions extends AddressRules {
  readonly resolve: Resolve;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  /** CA certificates that replace the default ones. */
  readonly ca?: string | undefined;
}

export interface Post {
  readonly kind: RequestKind;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Called before the connection is opened; false cancels the request. */
  readonly isWanted?: () => boolean;
}

export type PostResult =
  | { readonly kind: 'response'; readonly status: number; readonly body: Buffer }
  /** `reason` is shown to the agent. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Nothing was sent, because too many requests to the address are pending. `address` is the key for isBusy. */
  | { readonly kind: 'busy'; readonly address: string }
  /** `isWanted` returned false, or the poster was closed. */
  | { readonly kind: 'unwanted' };

export class Poster {
  readonly #options: PostOptions;
  readonly #limits = new AddressLimits();
  readonly #pending = new Set<AbortController>();
  #isClosed = false;

  constructor(options: PostOptions) {
    this.#options = options;
  }

  isBusy(address: string, kind: RequestKind): boolean {
    return this.#limits.isBusy(address, kind);
  }

  /** Aborts all requests, including later ones. */
  close(): void {
    this.#isClosed = true;
    for (const controller of this.#pending) controller.abort();
  }

  async post(post: Post): Promise<PostResult> {
    const controller = new AbortController();
    this.#pending.add(controller);
    const timer = setTimeout(() => controller.abort(), POST_MS_MAX);
    try {
      const address = await this.#addressOf(post.url, controller.signal);
      const key = `${address} ${post.url.protocol}${post.url.port}`;
      if (this.#isClosed || post.isWanted?.() === false) return { kind: 'unwanted' };
      if (this.#limits.isBusy(key, post.kind)) return { kind: 'busy', address: key };
      this.#limits.begin(key, post.kind);
      try {
        return await exchange(post, { address, signal: controller.signal, ca: this.#options.ca });
      } finally {
        this.#limits.end(key, post.kind, controller.signal.aborted);
      }
    } catch (error) {
      if (this.#isClosed) return { kind: 'unwanted' };
      return { kind: 'failed', reason: controller.signal.aborted ? NO_RESPONSE : reasonOf(error) };
    } finally {
      clearTimeout(timer);
      this.#pending.delete(controller);
    }
  }

  async #addressOf(url: URL, signal: AbortSignal): Promise<string> {
    const { isDevelopment, resolve, random } = this.#options;
    const { hostname } = url;
    const literal = addressIn(url) ?? (isDevelopment && hostname === LOCALHOST ? '127.0.0.1' : undefined);
    const addresses = literal === undefined ? await resolveBefore(signal, resolve(hostname, signal)) : [literal];
    requireAllowed(addresses, this.#options);
    const old = addresses.filter((address) => isIP(address) === 4);
    const usable = old.length > 0 ? old : addresses;
    return usable[Math.floor(random() * usable.length)] as string;
  }
}

const NO_RESPONSE = `no response within ${POST_MS_MAX / 1000} s`;

/** Rejects on abort, even if the resolver ignores the signal. */
function resolveBefore<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(NO_RESPONSE)), { once: true });
    work.then(resolve, reject);
  });
}

class PostFailed extends Error {}

/** Hides system errors from the agent, because they can name addresses and files. */
function reasonOf(error: unknown): string {
  if (error instanceof AddressNotAllowed || error instanceof PostFailed) return error.message;
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  if (syscall.startsWith('query')) return 'its name could not be resolved';
  if (code === 'ECONNREFUSED') return 'the connection was refused';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'the connection was reset';
  if (code.startsWith('HPE_')) return 'the response is not HTTP';
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO|EPROTO|HOSTNAME_)/.test(code))
    return `TLS failed (${code})`;
  return 'the connection failed';
}

interface Connection {
  readonly address: string;
  readonly signal: AbortSignal;
  readonly ca: string | undefined;
}

function exchange({ url, headers, body }: Post, { address, signal, ca }: Connection): Promise<PostResult> {
  const { protocol, hostname, port, host, pathname, search } = url;
  const options: RequestOptions = {
    method: 'POST',
    host: address,
    path: pathname + search,
    headers: { ...headers, Host: host, 'Content-Length': body.length, Connection: 'close' },
    agent: false,
    signal,
    maxHeaderSize: RESPONSE_BYTES_MAX,
    ...(port !== '' && { port }),
  };
  // Without a server name, TLS compares the certificate with the address.
  const servername = addressIn(url) === undefined ? hostname : '';
  const tls = { servername, rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
  return new Promise((resolve, reject) => {
    const request = protocol === 'https:' ? httpsRequest({ ...options, ...tls }) : httpRequest(options);
    let hasResponse = false;
    request.on('error', reject);
    request.on('response', (response) => {
      hasResponse = true;
      readBody(response).then(
        (read) => resolve({ kind: 'response', status: response.statusCode ?? 0, body: read }),
        reject,
      );
    });
    request.on('close', () => {
      if (!hasResponse) reject(new PostFailed('the connection was closed'));
    });
    request.end(body);
  });
}

async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    // Leaving the loop destroys the connection.
    if (size > RESPONSE_BYTES_MAX) throw new PostFailed(`the response has more than ${RESPONSE_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

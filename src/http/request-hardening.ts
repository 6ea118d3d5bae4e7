// Request hardening, before the routes: rejects requests that two parsers could read differently or whose head is too large, and
// serves the requests of a connection one at a time.
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { domainToUnicode } from 'node:url';
import type { HttpBindings } from '@hono/node-server';
import { onEachConnection } from '../connections/each-connection.ts';
import { parseTarget } from '../crypto/http-signature.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';
import { writeResponse } from './bare-socket.ts';
import { errorResponse } from './response.ts';

/** Why a request is rejected before it is read: too many from its address, or the service is stopping. */
export type RequestLimit = (incoming: IncomingMessage) => ForumError | undefined;

/** How long no request of a new connection should be read: its address took more of the main thread than it may. */
export type ConnectionWait = (socket: Socket) => Millis;

export interface Hardening {
  readonly requestLimit: RequestLimit;
  readonly connectionWait: ConnectionWait;
  readonly headBytesMax: number;
  readonly hosts: AcceptedHosts;
  /** The pipelined requests of all connections; beyond it, those that pipeline most are closed. */
  readonly pipelinedMax: number;
}

/**
 * A createServer like that of node:http. Its servers respond to rejected and ambiguous requests before the adapter sees them, and
 * serve one request of a connection at a time.
 */
export function hardenedServer(hardening: Hardening) {
  const { requestLimit, connectionWait, pipelinedMax } = hardening;
  return (options: ServerOptions, listener: RequestListener): Server => {
    const waitForTurn = pipelines(pipelinedMax);
    const server = createServer(options, function handle(incoming, outgoing): void {
      if (outgoing.socket === null) {
        waitForTurn(incoming, outgoing, handle);
        return;
      }
      const problem = requestLimit(incoming) ?? headProblem(incoming, hardening);
      if (problem === undefined) listener(incoming, outgoing);
      else if (problem.code === 'FORUM_ERR_RATE') setTimeout(respond, RATE_DELAY_MS, incoming, outgoing, problem);
      else respond(incoming, outgoing, problem);
    });
    onEachConnection(server, (socket) => readAfter(socket, connectionWait(socket)));
    const rejectExpectation = (incoming: IncomingMessage, outgoing: ServerResponse) => {
      respond(incoming, outgoing, invalid('Expect: only 100-continue is supported'), 417);
    };
    server.on('checkExpectation', rejectExpectation);
    // Node takes `x 100-continue` for 100-continue, other parsers for an unknown expectation, so they would wait for another response.
    return server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => {
      if (incoming.headers.expect?.toLowerCase() !== '100-continue') return rejectExpectation(incoming, outgoing);
      outgoing.writeContinue();
      server.emit('request', incoming, outgoing);
    });
  };
}

const CONNECTION_WAIT_MS_MAX = 2_500;

/** Parsing what a connection pipelines costs as much as responding to it. */
function readAfter(socket: Socket, wait: Millis): void {
  if (wait === 0) return;
  // Node begins to read in a tick that is scheduled already.
  process.nextTick(() => socket.pause());
  // Connections that were made together are not read together.
  const millis = Math.min(wait, CONNECTION_WAIT_MS_MAX) * (1 + Math.random());
  const waiting = setTimeout(() => socket.resume(), millis);
  socket.once('close', () => clearTimeout(waiting));
}

/** Every connection may have this many waiting requests, however many wait in all. */
const PIPELINED_ALWAYS = 16;

/**
 * Node hands over every pipelined request that it has parsed, up to 64 KiB of them. Each waits until its response is the
 * connection's current one, and nothing more is read meanwhile.
 */
function pipelines(max: number) {
  const waiting = new Map<Socket, number>();
  let total = 0;
  const count = (socket: Socket, change: 1 | -1) => {
    total += change;
    waiting.set(socket, (waiting.get(socket) ?? 0) + change);
  };
  return (incoming: IncomingMessage, outgoing: ServerResponse, handle: RequestListener): void => {
    const { socket } = incoming;
    const own = waiting.get(socket);
    if (socket.destroyed || (total >= max && (own ?? 0) >= PIPELINED_ALWAYS)) {
      socket.destroy();
      return;
    }
    if (own === undefined) {
      closeWithoutStackTraces(socket);
      socket.once('close', () => {
        total -= waiting.get(socket) ?? 0;
        waiting.delete(socket);
      });
    }
    count(socket, 1);
    socket.pause();
    outgoing.once('socket', () => {
      count(socket, -1);
      // Nothing listens after an upgrade, and what is read would be lost.
      if (socket.listenerCount('data') > 0) socket.resume();
      handle(incoming, outgoing);
    });
  };
}

/** Node creates an error for each waiting request of a connection that closes: a thousand stack traces take half a second. */
function closeWithoutStackTraces(socket: Socket): void {
  const { stackTraceLimit } = Error;
  socket.prependOnceListener('close', () => {
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
}

/** The delay makes an address that ignores a 429 cost less than one that is served: its connections send no more meanwhile. */
const RATE_DELAY_MS = 250;

function respond(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  problem: ForumError,
  status = statusOfHead(problem),
): void {
  const body = Buffer.from(JSON.stringify(problem.toBody()));
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = incoming.headers;
  // A new connection costs more than all else in a rejected request.
  const isKept = problem.code === 'FORUM_ERR_RATE' && length === '0' && encoding === undefined;
  const headers = { ...Object.fromEntries(errorResponse(problem).headers), ...(!isKept && { Connection: 'close' }) };
  outgoing.writeHead(status, { ...headers, 'Content-Length': body.length }).end(body);
}

export type Fetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** Responds to a rejected handshake with the usual body, which the adapter would leave out: upgrades have no response object. */
export function withUpgradeErrors(fetch: Fetch): Fetch {
  return (request, env) => {
    const response = fetch(request, env);
    return (env as Partial<HttpBindings>).outgoing === undefined ? finishUpgrade(response, env) : response;
  };
}

async function finishUpgrade(pending: Response | Promise<Response>, { incoming }: HttpBindings): Promise<Response> {
  const response = await pending;
  const isAccepted = response.status === 200 && response.body === null;
  if (!isAccepted) await writeResponse(incoming.socket, response);
  return response;
}

export const VERSIONS = 'only HTTP/1.1 and HTTP/1.0 are supported';

/** The target has no backslash, which URL parsers take for a slash, and no fragment, which is not part of a target. */
const TARGET = /^\/[!"$-[\]-~]*$/;

/**
 * The first problem of a request's head: another version of HTTP, too many bytes, two Host or Content-Type headers (Node takes
 * the first, others may not), an absolute-form or non-ASCII target, a missing or malformed host.
 */
export function headProblem(
  incoming: IncomingMessage,
  { headBytesMax, hosts }: Pick<Hardening, 'headBytesMax' | 'hosts'>,
): ForumError | undefined {
  const { method = '', url: target = '', httpVersion, headers, rawHeaders } = incoming;
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
  if (bytes > headBytesMax) return headTooLarge(headBytesMax);
  if (hostLines > 1) return invalid('the request has two host headers');
  if (types > 1) return invalid('the request has two content-type headers');
  if (!target.startsWith('/')) return invalid('the request target must be a path: absolute-form is not accepted');
  if (!TARGET.test(target)) return invalid('the request target must be printable ASCII without \\ and #');
  const { host = '' } = headers;
  if (hosts.has(host)) return undefined;
  return invalid('the Host header is missing or malformed');
}

export function headTooLarge(headBytesMax: number): ForumError {
  return new ForumError(
    'FORUM_ERR_TOO_LARGE',
    `the request head is too large: at most ${headBytesMax} bytes are accepted`,
  );
}

/** The status of a request that is rejected by its head alone. */
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
export class AcceptedHosts {
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

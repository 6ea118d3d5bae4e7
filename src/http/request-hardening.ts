// What stands before the routes: requests that two readers could read differently, or whose head is too large, are rejected, and
// the requests of a connection are served one at a time.
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
import { parseTarget } from '../crypto/http-signature.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { writeResponse } from './bare-socket.ts';
import { errorResponse } from './response.ts';

/** Why a request is rejected before anything of it is read: too many from its address, or the service is stopping. */
export type Admission = (incoming: IncomingMessage) => ForumError | undefined;

export interface Hardening {
  readonly admission: Admission;
  readonly headBytesMax: number;
}

/**
 * Makes node:http's createServer, with rejected and ambiguous requests answered before the adapter sees them, and one
 * request of a connection under way at a time.
 */
export function hardenedServer({ admission, headBytesMax }: Hardening) {
  return (options: ServerOptions, listener: RequestListener): Server => {
    const server = createServer(options, function handle(incoming, outgoing): void {
      // Node hands in every pipelined request that it has parsed. One whose response is not the connection's current one
      // waits until it is, and nothing more is read meanwhile.
      if (outgoing.socket === null) {
        incoming.socket.pause();
        outgoing.once('socket', (socket: Socket) => {
          // After an upgrade nothing listens, and what is read would be lost.
          if (socket.listenerCount('data') > 0) socket.resume();
          handle(incoming, outgoing);
        });
        return;
      }
      const problem = admission(incoming) ?? headProblem(incoming, headBytesMax);
      if (problem === undefined) listener(incoming, outgoing);
      else respond(outgoing, problem);
    });
    return server.on('checkExpectation', (_incoming, outgoing: ServerResponse) => {
      respond(outgoing, invalid('Expect: only 100-continue is supported'), 417);
    });
  };
}

function respond(outgoing: ServerResponse, problem: ForumError, status = statusOfHead(problem)): void {
  const body = Buffer.from(JSON.stringify(problem.toBody()));
  const headers = Object.fromEntries(errorResponse(problem).headers);
  outgoing.writeHead(status, { ...headers, 'Content-Length': body.length, Connection: 'close' }).end(body);
}

export type Fetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** Answers a rejected handshake with the usual body, which the adapter would leave out, as upgrades have no response object. */
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

/** Without a backslash, which URL parsers take for a slash, and without a fragment, which is no part of a target. */
const TARGET = /^\/[!"$-[\]-~]*$/;

/**
 * Another version of HTTP, a head that is too large, a Host or Content-Type twice (Node takes the first, others may not), an
 * absolute-form or a non-ASCII target, a host that is none.
 */
export function headProblem(incoming: IncomingMessage, headBytesMax: number): ForumError | undefined {
  const { method = '', url: target = '', httpVersion, headers, rawHeaders } = incoming;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return invalid(VERSIONS);
  let bytes = `${method} ${target} HTTP/1.1\r\n\r\n`.length;
  let hosts = 0;
  let types = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    bytes += name.length + (rawHeaders[index + 1] as string).length + ': \r\n'.length;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
    else if (name.length === 12 && name.toLowerCase() === 'content-type') types++;
  }
  if (bytes > headBytesMax) return headTooLarge(headBytesMax);
  if (hosts > 1) return invalid('the request has two host headers');
  if (types > 1) return invalid('the request has two content-type headers');
  if (!target.startsWith('/')) return invalid('the request target must be a path: absolute-form is not accepted');
  if (!TARGET.test(target)) return invalid('the request target must be printable ASCII without \\ and #');
  const { host = '' } = headers;
  if (parsedHosts.has(host) || isHost(host)) return undefined;
  return invalid('the Host header is missing or malformed');
}

export function headTooLarge(headBytesMax: number): ForumError {
  return new ForumError(
    'FORUM_ERR_TOO_LARGE',
    `the request head is too large: at most ${headBytesMax} bytes are accepted`,
  );
}

/** Of a request that is rejected by its head alone. */
export function statusOfHead({ code, status }: ForumError): number {
  return code === 'FORUM_ERR_TOO_LARGE' ? 431 : status;
}

/** Without empty labels. A name has at most 253 characters, a port 6 with its colon. */
const HOST = /^(?!\.|.*\.\.)[\w.:[\]-]{1,259}$/;
const PARSED_HOSTS_MAX = 100;
const parsedHosts = new Set<string>();

/** Whether every URL parser takes the host, auditors' included. Parsing costs more than all other checks together, so the last ones are remembered. */
function isHost(host: string): boolean {
  const name = HOST.test(host) ? parseTarget(`http://${host}/`)?.hostname : undefined;
  // The parser of Node 24 takes internationalised labels that cannot be decoded.
  if (name === undefined || /(^|\.)xn--/.test(domainToUnicode(name))) return false;
  if (parsedHosts.size >= PARSED_HOSTS_MAX) parsedHosts.clear();
  parsedHosts.add(host);
  return true;
}

export function invalid(detail: string): ForumError {
  return new ForumError('FORUM_ERR_VALIDATION', detail);
}

// What stands before the routes: requests that two readers could read differently, refused upgrades, and bytes that are no HTTP.
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { HttpBindings } from '@hono/node-server';
import type { WebSocketServer } from 'ws';
import { type ErrorCode, ForumError } from '../vocabulary/errors.ts';
import { writeResponse } from './raw-response.ts';
import { refusal } from './response.ts';
import { requirePlainTarget } from './target.ts';
import { serveWithoutUpgrade } from './without-upgrade.ts';

export interface ServerLimits {
  readonly headersTimeoutSeconds: number;
  readonly requestTimeoutSeconds: number;
  readonly keepAliveSeconds: number;
  /** Of a connection within a request or an answer: neither a byte came, nor was one taken. */
  readonly stallSeconds: number;
  readonly headerBytesMax: number;
}

/** How often Node looks for connections that are over their time. */
const CONNECTIONS_CHECK_MS = 1_000;

export function serverOptions(limits: ServerLimits): ServerOptions {
  return {
    headersTimeout: limits.headersTimeoutSeconds * 1000,
    requestTimeout: limits.requestTimeoutSeconds * 1000,
    keepAliveTimeout: limits.keepAliveSeconds * 1000,
    maxHeaderSize: limits.headerBytesMax,
    connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
    // Node would refuse its lack without a body; requirePlainTarget refuses it in the usual form.
    requireHostHeader: false,
  };
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Why a request is refused before anything of it is looked at: too many of that address, or the service is stopping. */
export type Doorkeeper = (incoming: IncomingMessage) => ForumError | undefined;

/** Makes node:http's createServer, with unwelcome and ambiguous requests answered before the adapter sees them. */
export function guardedServer(refuse: Doorkeeper): (options: ServerOptions, listener: Listener) => Server {
  return (options, listener) => {
    const server = createServer(options, (incoming, outgoing) => {
      const problem = refuse(incoming) ?? targetProblem(incoming);
      if (problem === undefined) listener(incoming, outgoing);
      else answer(outgoing, problem);
    });
    return server.on('checkExpectation', (_incoming, outgoing: ServerResponse) => {
      answer(outgoing, refused('Expect: only 100-continue is known here'), EXPECTATION_FAILED);
    });
  };
}

const EXPECTATION_FAILED = 417;

function answer(outgoing: ServerResponse, problem: ForumError, status: number = problem.status): void {
  const body = Buffer.from(JSON.stringify(problem.toBody()));
  const headers = Object.fromEntries(refusal(problem).headers);
  outgoing.writeHead(status, { ...headers, 'Content-Length': body.length, Connection: 'close' }).end(body);
}

export type Fetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** Answers a refused handshake with the usual body, which the adapter would leave out. */
export function withUpgradeRefusals(fetch: Fetch): Fetch {
  return (request, env) => {
    const response = fetch(request, env);
    return isUpgrade(env) ? refuseUpgrade(response, env) : response;
  };
}

async function refuseUpgrade(answer: Response | Promise<Response>, { incoming }: HttpBindings): Promise<Response> {
  const response = await answer;
  const isAccepted = response.status === 200 && response.body === null;
  if (!isAccepted) await writeResponse(incoming.socket, response);
  return response;
}

/** The adapter gives upgrades no response object. */
function isUpgrade({ outgoing }: Partial<HttpBindings>): boolean {
  return outgoing === undefined;
}

export function guardSockets(server: Server, webSockets: WebSocketServer, refuse: Doorkeeper): void {
  // First of the listeners: the adapter passes over a request whose Upgrade header is gone.
  server.prependListener('upgrade', (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    const isOffered = isStreamHandshake(request);
    const problem = isOffered ? (refuse(request) ?? targetProblem(request)) : undefined;
    if (isOffered && problem === undefined) return;
    delete request.headers.upgrade;
    if (problem === undefined) serveWithoutUpgrade(server, request, socket, rest);
    else void writeResponse(socket, refusal(problem));
  });
  webSockets.on('wsClientError', (error: Error, socket: Duplex) => {
    void writeResponse(socket, refusal(refused(`handshake: ${error.message}`)));
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    void writeResponse(socket, refusal(noProxy()));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else void writeResponse(socket, refusal(notHttp(error)), NOT_HTTP_STATUS[error.code ?? '']);
  });
}

const ALLOWED = 'GET, HEAD, OPTIONS, POST, PUT';

function noProxy(): ForumError {
  return new ForumError('FORUM_ERR_METHOD', 'CONNECT: this is no proxy', { headers: { Allow: ALLOWED } });
}

const STREAM_TARGET = /^[^?]*\/chambers\/[^/?]+\/stream(\?|$)/;

function isStreamHandshake({ method, url = '', headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && STREAM_TARGET.test(url);
}

const NOT_HTTP_STATUS: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

function notHttp({ code }: NodeJS.ErrnoException): ForumError {
  if (code === 'HPE_HEADER_OVERFLOW') return refused('the request head is too large', 'FORUM_ERR_TOO_LARGE');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refused('the request did not arrive in time');
  return refused('the bytes are not an HTTP request');
}

function targetProblem(incoming: IncomingMessage): ForumError | undefined {
  try {
    requirePlainTarget(incoming);
    return undefined;
  } catch (error) {
    return error instanceof ForumError ? error : refused('the request target is malformed');
  }
}

function refused(detail: string, code: ErrorCode = 'FORUM_ERR_VALIDATION'): ForumError {
  return new ForumError(code, detail);
}

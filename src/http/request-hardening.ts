// Node's server before the adapter: rejects requests that are over their limits or ambiguous, and reads new connections of a
// network that took too much of the main thread later.
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { type ForumError, invalid } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { Pipelines } from './pipelines.ts';
import { type RequestHeads, statusOfHead } from './request-head.ts';
import { errorParts } from './response.ts';

/** Why a request is rejected before it is read: too many from its address, or the service is stopping. */
export type RequestLimit = (incoming: IncomingMessage) => ForumError | undefined;

/** How long no request of a new connection should be read: its address took more of the main thread than it may. */
export type ConnectionWait = (socket: Socket) => Millis;

export interface Hardening {
  readonly requestLimit: RequestLimit;
  readonly connectionWait: ConnectionWait;
  readonly heads: RequestHeads;
  readonly pipelines: Pipelines;
}

/** A createServer like that of node:http, whose servers call the listener only with requests that passed all checks. */
export function hardenedServer({ requestLimit, connectionWait, heads, pipelines }: Hardening) {
  return (options: ServerOptions, listener: RequestListener): Server => {
    const admit: RequestListener = (incoming, outgoing) => {
      const problem = requestLimit(incoming) ?? heads.problemOf(incoming);
      // Node drops what follows such a request in the same packet.
      if (READS_UPGRADE_BODIES && incoming.headers.upgrade && hasBody(incoming))
        outgoing.setHeader('Connection', 'close');
      if (problem === undefined) listener(incoming, outgoing);
      else if (problem.code === 'FORUM_ERR_RATE') setTimeout(reject, RATE_DELAY_MS, incoming, outgoing, problem);
      else reject(incoming, outgoing, problem);
    };
    const server = createServer({ ...options, ...UPGRADE_OPTIONS }, (incoming, outgoing) =>
      pipelines.serve(incoming, outgoing, admit),
    );
    server.on('connection', (socket) => readAfter(socket, connectionWait(socket)));
    const rejectExpectation: RequestListener = (incoming, outgoing) => {
      reject(incoming, outgoing, invalid('Expect: only 100-continue is supported'), 417);
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

/** Since version 25, Node reads the body of an upgrade itself, and can hand over a stream in place of the socket. */
const READS_UPGRADE_BODIES = Number.parseInt(process.versions.node, 10) >= 25;

/** Node serves a request with a body as if it had no `Upgrade`, if it would read the body otherwise. */
const UPGRADE_OPTIONS: ServerOptions = READS_UPGRADE_BODIES
  ? { shouldUpgradeCallback: (request) => !hasBody(request) }
  : {};

function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return length !== '0' || encoding !== undefined;
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

/** The delay makes an address that ignores a 429 cost less than one that is served: its connections send no more meanwhile. */
const RATE_DELAY_MS = 250;

function reject(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  problem: ForumError,
  status = statusOfHead(problem),
): void {
  const { headers, body } = errorParts(problem);
  // A new connection costs more than all else in a rejected request.
  const isKept = problem.code === 'FORUM_ERR_RATE' && !hasBody(incoming);
  const framing = { 'Content-Length': Buffer.byteLength(body), ...(!isKept && { Connection: 'close' }) };
  outgoing.writeHead(status, { ...headers, ...framing }).end(body);
}

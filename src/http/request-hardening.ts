// Node's HTTP server, which runs before the adapter: rejects requests that are over their limits or ambiguous, and delays reading new
// connections of networks that exceed their budget of main-thread time.
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

/**
 * Returns an error if the request must be rejected before it is read: its address is sending too many requests, or the service is
 * stopping.
 */
export type RequestLimit = (incoming: IncomingMessage) => ForumError | undefined;

/** Returns how long to delay reading a new connection: 0 unless its address exceeds its budget of main-thread time. */
export type ConnectionWait = (socket: Socket) => Millis;

export interface Hardening {
  readonly requestLimit: RequestLimit;
  readonly connectionWait: ConnectionWait;
  readonly heads: RequestHeads;
  readonly pipelines: Pipelines;
}

/** Returns a createServer like that of node:http, whose servers call the listener only with requests that pass all checks. */
export function hardenedServer({ requestLimit, connectionWait, heads, pipelines }: Hardening) {
  return (options: ServerOptions, listener: RequestListener): Server => {
    const admit: RequestListener = (incoming, outgoing) => {
      const problem = requestLimit(incoming) ?? heads.problemOf(incoming);
      // Node drops the bytes that follow such a request in the same packet.
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
    // Node treats `x 100-continue` as 100-continue. Other parsers treat it as an unknown expectation and would wait for another response.
    return server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => {
      if (incoming.headers.expect?.toLowerCase() !== '100-continue') return rejectExpectation(incoming, outgoing);
      outgoing.writeContinue();
      server.emit('request', incoming, outgoing);
    });
  };
}

/** Since version 25, Node reads the body of an upgrade itself, and may emit a stream in place of the socket. */
const READS_UPGRADE_BODIES = Number.parseInt(process.versions.node, 10) >= 25;

/** Makes Node ignore the `Upgrade` of a request with a body if Node would read that body itself. */
const UPGRADE_OPTIONS: ServerOptions = READS_UPGRADE_BODIES
  ? { shouldUpgradeCallback: (request) => !hasBody(request) }
  : {};

function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return length !== '0' || encoding !== undefined;
}

const CONNECTION_WAIT_MS_MAX = 2_500;

/** Delays reading rather than responding, because parsing pipelined requests costs as much as serving them. */
function readAfter(socket: Socket, wait: Millis): void {
  if (wait === 0) return;
  // Node has already scheduled the tick in which it begins to read.
  process.nextTick(() => socket.pause());
  // The jitter separates connections that were opened together.
  const millis = Math.min(wait, CONNECTION_WAIT_MS_MAX) * (1 + Math.random());
  const waiting = setTimeout(() => socket.resume(), millis);
  socket.once('close', () => clearTimeout(waiting));
}

/** During the delay a connection sends no further request, so an address that ignores a 429 costs less than one that is served. */
const RATE_DELAY_MS = 250;

function reject(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  problem: ForumError,
  status = statusOfHead(problem),
): void {
  const { headers, body } = errorParts(problem);
  // A new connection would cost more than the rest of a rejected request.
  const isKept = problem.code === 'FORUM_ERR_RATE' && !hasBody(incoming);
  const framing = { 'Content-Length': Buffer.byteLength(body), ...(!isKept && { Connection: 'close' }) };
  outgoing.writeHead(status, { ...headers, ...framing }).end(body);
}

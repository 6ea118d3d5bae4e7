// Serves add-checkpoint over HTTP.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { detach } from '../process/detach.ts';
import { ADD_CHECKPOINT_BYTES_MAX } from '../tlog/add-checkpoint.ts';
import { addCheckpoint, type WitnessOptions, type WitnessReply } from './witness.ts';

const REQUEST_MS_MAX = 10_000;
const CONNECTIONS_MAX = 1_000;

export function createWitnessServer(options: WitnessOptions): Server {
  const limits = { requestTimeout: REQUEST_MS_MAX, headersTimeout: REQUEST_MS_MAX, connectionsCheckingInterval: 1_000 };
  const server = createServer(limits, (request, response) => {
    const respond = ({ status, type, body }: Reply) => response.writeHead(status, { 'Content-Type': type }).end(body);
    detach(
      reply(options, request)
        .catch(() => FAILED)
        .then(respond),
    );
  });
  server.maxConnections = CONNECTIONS_MAX;
  return server;
}

interface Reply extends Omit<WitnessReply, 'status'> {
  readonly status: number;
}

const TEXT = 'text/plain; charset=utf-8';
const NOT_FOUND: Reply = { status: 404, type: TEXT, body: 'POST /add-checkpoint\n' };
const TOO_LARGE: Reply = { status: 413, type: TEXT, body: 'the body is too large\n' };
/** The state could not be written, for example. */
const FAILED: Reply = { status: 500, type: TEXT, body: 'the witness has failed\n' };

async function reply(options: WitnessOptions, request: IncomingMessage): Promise<Reply> {
  if (request.method !== 'POST' || request.url !== '/add-checkpoint') return NOT_FOUND;
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > ADD_CHECKPOINT_BYTES_MAX) return TOO_LARGE;
    parts.push(chunk);
  }
  return addCheckpoint(options, Buffer.concat(parts).toString());
}

// The two HTTP servers of the baselines, each as simple as its documentation shows.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import type { BaselineRequest } from './evidence.ts';

export type Front = 'http' | 'hono';

export interface BaselineResponse {
  readonly status: 200 | 401;
  readonly body: object;
}

/** `read` is null if a baseline ignores the request. */
export interface Handler {
  readonly isHello: boolean;
  readonly answer: (path: string, request: BaselineRequest) => Promise<BaselineResponse>;
}

const HELLO = { hello: 'world' };

/** The service's own timeout: the load generator signs for several seconds while its connections are idle. */
const KEEP_ALIVE_MS = 60_000;

export function createFront(front: Front, handler: Handler): Server {
  const server = front === 'http' ? plainServer(handler) : honoServer(handler);
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  return server;
}

function plainServer({ isHello, answer }: Handler): Server {
  return createServer(async (incoming, response) => {
    const path = incoming.url ?? '';
    const { status, body } =
      isHello && isMove(path) ? { status: 200, body: HELLO } : await answer(path, await readRequest(incoming));
    const text = JSON.stringify(body);
    response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
    response.end(text);
  });
}

async function readRequest(incoming: IncomingMessage): Promise<BaselineRequest> {
  const body = await readBody(incoming);
  const { headers } = incoming;
  const { signature } = headers;
  return {
    method: incoming.method ?? '',
    targetUri: `http://${headers.host}${incoming.url}`,
    contentDigest: String(headers['content-digest']),
    signatureInput: String(headers['signature-input']),
    signature: String(signature),
    body,
  };
}

function readBody(incoming: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => resolve(Buffer.concat(chunks)));
    incoming.on('error', reject);
  });
}

function honoServer({ isHello, answer }: Handler): Server {
  const app = new Hono<{ Bindings: HttpBindings }>();
  if (isHello) app.post('/chambers/:id/:move{debate|pass}', (c) => c.json(HELLO));
  app.all('*', async (c) => {
    const path = c.env.incoming.url ?? '';
    const body = Buffer.from(await c.req.arrayBuffer());
    const header = (name: string) => c.req.header(name) ?? '';
    const answered = await answer(path, {
      method: c.req.method,
      targetUri: `http://${header('host')}${path}`,
      contentDigest: header('content-digest'),
      signatureInput: header('signature-input'),
      signature: header('signature'),
      body,
    });
    return c.json(answered.body, answered.status);
  });
  return createServer(getRequestListener(app.fetch));
}

export function isMove(path: string): boolean {
  return path.endsWith('/debate') || path.endsWith('/pass');
}

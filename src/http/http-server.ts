// Node's HTTP server under the app: hardened before the adapter, with WebSocket upgrades, and the limits of both.
import type { createServer, Server } from 'node:http';
import { createAdaptorServer, type WebSocketServerLike } from '@hono/node-server';
import { WebSocketServer } from 'ws';
import { type Admission, type Fetch, hardenedServer, hardenSockets, withUpgradeErrors } from './request-hardening.ts';

export interface ServerLimits {
  readonly headersTimeoutSeconds: number;
  readonly requestTimeoutSeconds: number;
  readonly keepAliveSeconds: number;
  /** Of a connection within a request or a response: neither a byte came, nor was one taken. */
  readonly stallSeconds: number;
  readonly headerBytesMax: number;
  readonly connectionsMax: number;
}

/** How often Node looks for connections that have timed out. */
const CONNECTIONS_CHECK_MS = 1_000;
/** Consumers have nothing to say to a stream. */
const MESSAGE_BYTES_MAX = 1_024;

export interface HttpServerOptions {
  readonly fetch: Fetch;
  readonly admission: Admission;
  readonly limits: ServerLimits;
}

/** A server that does not listen yet. */
export function createHttpServer({ fetch, admission, limits }: HttpServerOptions): Server {
  const webSockets = new WebSocketServer({
    noServer: true,
    // Liveness tracks them.
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES_MAX,
  });
  // The adapter's types are wider than what it is given here: HTTP/2, and servers of other makes.
  const server = createAdaptorServer({
    fetch: withUpgradeErrors(fetch) as Parameters<typeof createAdaptorServer>[0]['fetch'],
    websocket: { server: webSockets as WebSocketServerLike },
    createServer: hardenedServer(admission) as typeof createServer,
    serverOptions: {
      headersTimeout: limits.headersTimeoutSeconds * 1000,
      requestTimeout: limits.requestTimeoutSeconds * 1000,
      keepAliveTimeout: limits.keepAliveSeconds * 1000,
      maxHeaderSize: limits.headerBytesMax,
      connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
      // Node would reject a missing Host without a body; request hardening rejects it in the usual form.
      requireHostHeader: false,
    },
  }) as Server;
  server.maxConnections = limits.connectionsMax;
  // Node would drop header lines beyond its default, a second Host among them; HEADER_BYTES_MAX bounds them.
  server.maxHeadersCount = 0;
  server.timeout = limits.stallSeconds * 1000;
  hardenSockets(server, webSockets, admission);
  return server;
}

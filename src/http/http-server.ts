// Node's HTTP server under the app: guarded before the adapter, with WebSocket upgrades, and the limits of both.
import type { createServer, Server } from 'node:http';
import { createAdaptorServer, type WebSocketServerLike } from '@hono/node-server';
import { WebSocketServer } from 'ws';
import {
  type Doorkeeper,
  type Fetch,
  guardedServer,
  guardSockets,
  type ServerLimits,
  serverOptions,
  withUpgradeRefusals,
} from './guard.ts';

type FetchCallback = Parameters<typeof createAdaptorServer>[0]['fetch'];

/** Consumers have nothing to say to a stream. */
const MESSAGE_BYTES_MAX = 1_024;

export interface HttpServerOptions {
  readonly fetch: Fetch;
  readonly refuse: Doorkeeper;
  readonly limits: ServerLimits & { readonly connectionsMax: number };
}

/** A server that does not listen yet. */
export function createHttpServer({ fetch, refuse, limits }: HttpServerOptions): Server {
  const webSockets = new WebSocketServer({
    noServer: true,
    // Liveness knows them all.
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES_MAX,
  });
  // The adapter's types are wider than what it is given here: HTTP/2, and servers of other makes.
  const server = createAdaptorServer({
    fetch: withUpgradeRefusals(fetch) as FetchCallback,
    websocket: { server: webSockets as WebSocketServerLike },
    createServer: guardedServer(refuse) as typeof createServer,
    serverOptions: serverOptions(limits),
  }) as Server;
  server.maxConnections = limits.connectionsMax;
  // Node would drop what comes after so many lines, a second Host among them; HEADER_BYTES_MAX bounds them as it is.
  server.maxHeadersCount = 0;
  server.timeout = limits.stallSeconds * 1000;
  guardSockets(server, webSockets, refuse);
  return server;
}

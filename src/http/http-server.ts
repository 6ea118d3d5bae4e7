// Node's HTTP server for the app, hardened and with WebSockets.
import type { createServer, Server } from 'node:http';
import type { AddressInfo, Server as NetServer } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Millis } from '../vocabulary/values.ts';
import { Pipelines } from './pipelines.ts';
import { type ConnectionWait, hardenedServer, type RequestLimit } from './request-hardening.ts';
import { RequestHeads } from './request-head.ts';
import { datedResponses } from './response-date.ts';
import { type Fetch, handleUpgrades } from './upgrades.ts';

export interface ServerLimits {
  readonly HEADERS_TIMEOUT_SECONDS: number;
  readonly REQUEST_TIMEOUT_SECONDS: number;
  readonly KEEP_ALIVE_SECONDS: number;
  /** How long a request or response may go without a byte received or sent. */
  readonly STALL_SECONDS: number;
  readonly HEADER_BYTES_MAX: number;
  readonly PIPELINED_REQUESTS_MAX: number;
  readonly CONNECTIONS_MAX: number;
}

/** How often Node looks for timed-out connections. */
const CONNECTIONS_CHECK_MS = 1_000;

interface HttpServerOptions {
  readonly fetch: Fetch;
  readonly requestLimit: RequestLimit;
  readonly connectionWait: ConnectionWait;
  readonly limits: ServerLimits;
  /** The service's time, for the Date of responses. */
  readonly now: () => Millis;
}

export function createHttpServer({ fetch, requestLimit, connectionWait, limits, now }: HttpServerOptions): Server {
  const heads = new RequestHeads(limits.HEADER_BYTES_MAX);
  const pipelines = new Pipelines(limits.PIPELINED_REQUESTS_MAX);
  const hardening = { requestLimit, connectionWait, heads, pipelines };
  // The adapter's types also cover HTTP/2 and other kinds of servers.
  const server = createAdaptorServer({
    fetch: fetch as Parameters<typeof createAdaptorServer>[0]['fetch'],
    createServer: hardenedServer(hardening) as typeof createServer,
    serverOptions: {
      ServerResponse: datedResponses(now),
      headersTimeout: limits.HEADERS_TIMEOUT_SECONDS * 1000,
      requestTimeout: limits.REQUEST_TIMEOUT_SECONDS * 1000,
      keepAliveTimeout: limits.KEEP_ALIVE_SECONDS * 1000,
      // Node counts only the target, names and values; RequestHeads counts every byte.
      maxHeaderSize: limits.HEADER_BYTES_MAX,
      connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
      // RequestHeads rejects a missing Host with the usual body; Node's error has none.
      requireHostHeader: false,
    },
  }) as Server;
  server.maxConnections = limits.CONNECTIONS_MAX;
  // By default Node drops header lines beyond a maximum number, perhaps a second Host; HEADER_BYTES_MAX bounds them instead.
  server.maxHeadersCount = 0;
  server.timeout = limits.STALL_SECONDS * 1000;
  handleUpgrades(server, { ...hardening, fetch });
  return server;
}

export interface ListenAddress {
  readonly port: number;
  readonly host: string;
  /** The variables that set port and host. */
  readonly variables: { readonly port: string; readonly host: string };
}

/** `variable` names the setting to change. */
export class ListenError extends Error {
  readonly variable: string;

  constructor({ port, host, variables }: ListenAddress, { code = '', message }: NodeJS.ErrnoException) {
    super(`cannot listen on ${host}:${port}: ${LISTEN_PROBLEMS[code] ?? message}`);
    this.variable = HOST_PROBLEMS.has(code) ? variables.host : variables.port;
  }
}

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EADDRNOTAVAIL: 'not an address of this machine',
  ENOTFOUND: 'no such host name',
  EACCES: 'the system reserves the port for root',
};
const HOST_PROBLEMS: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL']);

/** Returns the URL where the server listens; throws ListenError. */
export async function listen(server: NetServer, address: ListenAddress): Promise<string> {
  const { port, host } = address;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new ListenError(address, error)));
    server.listen(port, host, resolve);
  });
  return `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}

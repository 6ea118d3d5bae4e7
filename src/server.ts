// The service put together: log, forum, verifier, HTTP, streams and relayer, and how they stop without losing anything.
import type { createServer, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer, type WebSocketServerLike } from '@hono/node-server';
import type { Logger } from 'pino';
import { WebSocketServer } from 'ws';
import { type ChainLink, openChain } from './chain.ts';
import type { Config } from './config.ts';
import { Forum } from './forum/forum.ts';
import { createApp } from './http/app.ts';
import type { ForumApp } from './http/context.ts';
import { createGuardedServer, guardSockets, serverOptions, withUpgradeRefusals } from './http/guard.ts';
import { CORS_HEADERS } from './http/response.ts';
import { openSqliteLog } from './log/sqlite-log.ts';
import { Liveness } from './stream/liveness.ts';
import { streamRoutes } from './stream/routes.ts';
import { createVerifier } from './verifier/verifier.ts';
import type { Millis } from './vocabulary/values.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly version: string;
  readonly clock?: () => Millis;
  /** Memory and disk may differ: the process must not go on. */
  readonly onFatal: (error: unknown) => void;
}

export interface Service {
  readonly forum: Forum;
  /** Where it listens. */
  readonly url: string;
  /** Answers what is running, closes streams with 1012 and releases the log. */
  stop(): Promise<void>;
}

/** How long running requests and stream peers have to finish. */
const STOP_GRACE_MS = 5_000;

type FetchCallback = Parameters<typeof createAdaptorServer>[0]['fetch'];

export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, logger, clock = Date.now } = options;
  const log = openSqliteLog(config.DATABASE_PATH);
  try {
    const forum = new Forum({ log, clock, onFatal: options.onFatal, ...rulesOf(config) });
    const chain = await openChain({ config, forum, logger });
    return await serve(options, forum, chain).catch(async (error: unknown) => {
      await chain.stop();
      throw error;
    });
  } catch (error) {
    await log.close();
    throw error;
  }
}

async function serve(options: ServiceOptions, forum: Forum, chain: ChainLink): Promise<Service> {
  const { config, logger } = options;
  const verifier = createVerifier({
    ...(config.VERIFIER_THREADS === undefined ? {} : { threads: config.VERIFIER_THREADS }),
    onThreadLost: (reason) => logger.warn({ reason }, 'a verifier thread ended; node:crypto verifies in its place'),
  });
  const liveness = new Liveness({
    pingIntervalMs: config.STREAM_PING_SECONDS * 1000,
    deadAfterMs: config.STREAM_DEAD_SECONDS * 1000,
  });
  const app = createApp({ ...httpOptions(options, forum, chain), verify: verifier.verify });
  streamRoutes(app, { forum, liveness, headers: CORS_HEADERS });
  const server = createHttpServer(config, app);
  try {
    await listen(server, config);
  } catch (error) {
    await verifier.close();
    throw error;
  }
  return { forum, url: urlOf(server, config.HOST), stop };

  /** First nothing new comes in, then what runs is answered, and the log closes last. */
  async function stop(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeIdleConnections();
    liveness.close();
    const relayed = chain.stop();
    await Promise.race([Promise.all([closed, relayed]), grace()]);
    liveness.terminate();
    server.closeAllConnections();
    await relayed;
    await verifier.close();
    await forum.log.close();
  }
}

function createHttpServer(config: Config, app: ForumApp): Server {
  const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: MESSAGE_BYTES_MAX });
  const server = createAdaptorServer({
    fetch: withUpgradeRefusals(app.fetch) as FetchCallback,
    websocket: { server: webSockets as WebSocketServerLike },
    createServer: createGuardedServer as typeof createServer,
    serverOptions: serverOptions(limitsOf(config)),
  }) as Server;
  server.maxConnections = config.CONNECTIONS_MAX;
  guardSockets(server, webSockets);
  return server;
}

/** Consumers have nothing to say to a stream. */
const MESSAGE_BYTES_MAX = 1_024;

function rulesOf(config: Config) {
  return {
    limits: {
      membersMax: config.MEMBERS_MAX,
      ideasMax: config.IDEAS_MAX,
      openChambersPerDidMax: config.CHAMBERS_OPEN_PER_DID_MAX,
    },
    ages: { maxAgeSeconds: config.SIGNATURE_MAX_AGE_SECONDS, maxSkewSeconds: config.SIGNATURE_MAX_SKEW_SECONDS },
    cache: { chambersCachedMax: config.CHAMBERS_CACHED_MAX, accountsCachedMax: config.ACCOUNTS_CACHED_MAX },
  };
}

function limitsOf(config: Config) {
  return {
    headersTimeoutSeconds: config.HEADERS_TIMEOUT_SECONDS,
    requestTimeoutSeconds: config.REQUEST_TIMEOUT_SECONDS,
    keepAliveSeconds: config.KEEP_ALIVE_SECONDS,
    headerBytesMax: config.HEADER_BYTES_MAX,
  };
}

function httpOptions({ config, version, logger }: ServiceOptions, forum: Forum, chain: ChainLink) {
  return {
    forum,
    env: config.NODE_ENV,
    version,
    publicUrls: config.PUBLIC_URL,
    allowUnsigned: config.DEV_ALLOW_UNSIGNED,
    maxBodyBytes: config.MAX_BODY_BYTES,
    chainStatus: () => chain.status(),
    onDefect: (error: unknown) => logger.error({ error }, 'a request met a defect'),
  };
}

function listen(server: Server, { PORT, HOST }: Config): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new Error(`cannot listen on ${HOST}:${PORT}: ${error.message}`)));
    server.listen(PORT, HOST, resolve);
  });
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function grace(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, STOP_GRACE_MS).unref());
}

// Assembles the service from log, forum, verifier, HTTP, streams and relayer, and stops it without losing anything.
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import { type Config, readConfigured } from './config.ts';
import { toBlockList } from './connections/client-address.ts';
import { Liveness } from './connections/liveness.ts';
import { Quota } from './connections/quota.ts';
import { RepeatedLog } from './diagnostics/repeated-log.ts';
import { docsRoutes } from './docs/routes.ts';
import { Forum } from './forum/forum.ts';
import { AccessList } from './http/access-list.ts';
import { AdmissionControl, RateLimit } from './http/admission.ts';
import { createApp, httpRoutes, routeOf } from './http/app.ts';
import { compressionRoutes } from './http/compression.ts';
import type { HttpOptions } from './http/context.ts';
import { createHttpServer, listen } from './http/http-server.ts';
import { readGateRoutes } from './http/read-gate.ts';
import { readBody } from './http/request.ts';
import { CORS_HEADERS } from './http/response.ts';
import { TodoWatches } from './http/todo-watches.ts';
import type { StreamDamaged } from './log/damage.ts';
import { describeDatabase } from './log/postgres/database-url.ts';
import { openSqliteStore } from './log/sqlite/store.ts';
import { mcpRoutes } from './mcp/routes.ts';
import { pageRoutes } from './page/routes.ts';
import type { ChainLink } from './service/chain.ts';
import { logFailure, type Observation, openObservation } from './service/observation.ts';
import { streamEndpoints } from './stream/endpoints.ts';
import { streamRoutes } from './stream/routes.ts';
import { createVerifier } from './verifier/verifier.ts';
import type { Millis } from './vocabulary/values.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly version: string;
  readonly clock?: () => Millis;
  /** Lines of the logger that could not be written. */
  readonly lostLogLines?: () => number;
  /** Memory and disk may differ: the process must stop. */
  readonly onFatal: (error: unknown) => void;
}

export interface Service {
  readonly forum: Forum;
  /** The address that it listens on. */
  readonly url: string;
  /** Reads the allow-list and the ban list again. */
  reloadAccess(): void;
  /** Finishes requests under way, closes streams with 1012 and releases the log. */
  stop(): Promise<void>;
}

/** From the beginning of a stop on: for requests under way, stream peers, and the relayer with its chain. */
const STOP_GRACE_MS = 5_000;
/** From the beginning of a stop on: for moves under way to be written. */
const COMMITS_MS_MAX = 6_500;
/** For the clock to be persisted, which the next start does without. */
const CLOCK_MS_MAX = 1_000;
/** While stopping: a keep-alive connection becomes idle only once its last response is out. */
const IDLE_SWEEP_MS = 20;
/** The most that the service's clock can go back in a crash, and how soon a log that takes no writes is noticed without moves. */
const CLOCK_PERSIST_INTERVAL_MS = 2_000;

export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, logger, onFatal } = options;
  const { store, now } = await openStore(options);
  const clock = options.clock ?? now;
  try {
    const observation = openObservation(config, logger);
    const { onBatch } = observation;
    const access = readConfigured(() => openAccessList(options));
    const permits = access.permits.bind(access);
    const agentRate = new RateLimit({
      perSecond: config.RATE_PER_DID_PER_SECOND,
      burst: config.RATE_PER_DID_BURST,
    });
    const forum = new Forum({
      store,
      agentRate,
      accountChangeRate: new RateLimit({
        perSecond: config.ACCOUNT_CHANGES_PER_DID_PER_MINUTE / 60,
        burst: config.ACCOUNT_CHANGES_PER_DID_BURST,
      }),
      clock,
      onFatal,
      permits,
      limits: {
        membersMax: config.MEMBERS_MAX,
        ideasMax: config.IDEAS_MAX,
        openChambersPerDidMax: config.CHAMBERS_OPEN_PER_DID_MAX,
      },
      ages: { maxAgeSeconds: config.SIGNATURE_MAX_AGE_SECONDS, maxSkewSeconds: config.SIGNATURE_MAX_SKEW_SECONDS },
      stateCacheBytesMax: config.STATE_CACHE_BYTES_MAX,
      commitQueueMax: config.COMMIT_QUEUE_MAX,
      ...(onBatch && { onBatch }),
    });
    warnIfClockIsBehind(forum, logger);
    const chain = await openChain(forum, options);
    return await serve(options, { forum, agentRate, chain, observation, access }).catch(async (error: unknown) => {
      await chain.stop();
      throw error;
    });
  } catch (error) {
    await store.close();
    throw error;
  }
}

function openAccessList({ config, logger }: ServiceOptions): AccessList {
  return new AccessList({
    allowFile: config.ALLOW_LIST_FILE,
    banFile: config.BAN_LIST_FILE,
    onProblem: (error, repeats) =>
      logger.error({ err: error, ...repeats }, 'access list not read: the previous one stays in force'),
  });
}

async function openStore({ config, logger, onFatal }: ServiceOptions) {
  const onDamage = ({ stream, eventId, message }: StreamDamaged) =>
    logger.error({ stream, eventId }, `alert raised: ${message}; restore a backup`);
  const { DATABASE_URL: url, DATABASE_CONNECTIONS_MAX: connectionsMax } = config;
  if (url === undefined) {
    return { store: openSqliteStore(config.DATABASE_PATH, { onCorruption: onFatal, onDamage }), now: Date.now };
  }
  // Loaded only when used: it would slow every other start.
  const { openPostgresStore } = await import('./log/postgres/store.ts');
  const drifts = new RepeatedLog();
  const onDrift = (driftMillis: Millis) =>
    drifts.report('drift', '', (repeats) => {
      logger.warn(
        { driftMillis, ...repeats },
        "this machine's clock drifted from the database's, which the service uses",
      );
    });
  const store = await openPostgresStore({ url, connectionsMax, onDamage, onDrift });
  return { store, now: () => store.clock.now() };
}

const NO_CHAIN: ChainLink = {
  name: 'none',
  status: () => ({ ok: true, details: { chain: null } }),
  stop: async () => {},
};

async function openChain(forum: Forum, { config, logger }: ServiceOptions): Promise<ChainLink> {
  if (config.CHAIN === 'none') return NO_CHAIN;
  // Loaded only when used: it takes half of the start-up time.
  const { openChain } = await import('./service/chain.ts');
  return openChain({ config, forum, logger });
}

interface Parts {
  readonly forum: Forum;
  readonly agentRate: RateLimit;
  readonly chain: ChainLink;
  readonly observation: Observation;
  readonly access: AccessList;
}

async function serve(
  options: ServiceOptions,
  { forum, agentRate, chain, observation, access }: Parts,
): Promise<Service> {
  const { config, logger } = options;
  const losses = new RepeatedLog();
  const verifier = createVerifier({
    ...(config.VERIFIER_THREADS === undefined ? {} : { threads: config.VERIFIER_THREADS }),
    onThreadLost: (reason) =>
      losses.report('thread', reason, (repeats) => {
        logger.warn({ reason, ...repeats }, 'a verifier thread ended; node:crypto verifies in its place');
      }),
  });
  const liveness = new Liveness({
    pingIntervalMs: config.STREAM_PING_SECONDS * 1000,
    deadAfterMs: config.STREAM_DEAD_SECONDS * 1000,
  });
  const admissionControl = new AdmissionControl({
    trustedProxies: toBlockList(config.TRUSTED_PROXIES),
    perAddress: { perSecond: config.RATE_PER_ADDRESS_PER_SECOND, burst: config.RATE_PER_ADDRESS_BURST },
    workPerAddress: { perSecond: config.WORK_MS_PER_ADDRESS_PER_SECOND, burst: config.WORK_MS_PER_ADDRESS_BURST },
    registrationsPerAddress: {
      perSecond: config.REGISTRATIONS_PER_ADDRESS_PER_MINUTE / 60,
      burst: config.REGISTRATIONS_PER_ADDRESS_BURST,
    },
  });
  const networkOf = admissionControl.networkOf.bind(admissionControl);
  const quota = new Quota(config.STREAMS_PER_ADDRESS_MAX, 'streams from your address');
  const todoWatches = new TodoWatches(forum);
  const http: HttpOptions = {
    forum,
    verify: verifier.verify,
    networkOf,
    requireRegistration: admissionControl.requireRegistration.bind(admissionControl),
    env: config.NODE_ENV,
    version: options.version,
    publicUrls: config.PUBLIC_URL,
    allowUnsigned: config.DEV_ALLOW_UNSIGNED,
    maxBodyBytes: config.MAX_BODY_BYTES,
    chainStatus: chain.status,
    agentRate,
    responseCacheBytesMax: config.RESPONSE_CACHE_BYTES_MAX,
    todoWatches,
    waits: new Quota(config.WAITS_PER_DID_MAX, 'waiting requests of this agent'),
    liveness,
    onFailure: (failure) => logFailure(logger, failure),
  };
  const reads = new Quota(config.READS_PER_ADDRESS_MAX, 'reads from your address that are not taken yet');
  const workError = admissionControl.workError.bind(admissionControl);
  const app = createApp(http, (first) => {
    readGateRoutes(first, { networkOf, underWay: reads, workError });
    compressionRoutes(first);
    pageRoutes(first, {
      forum,
      headers: CORS_HEADERS,
      cacheBytesMax: config.RESPONSE_CACHE_BYTES_MAX,
      relayerProblem: () => chain.status().relayer?.reason,
    });
  });
  const subscriptions = streamRoutes(app, {
    forum,
    liveness,
    quota,
    networkOf,
    workWait: admissionControl.workWait.bind(admissionControl),
    headers: CORS_HEADERS,
  });
  mcpRoutes(app, {
    version: options.version,
    publicUrls: config.PUBLIC_URL,
    headers: CORS_HEADERS,
    readJson: async (c) => (await readBody(c, config.MAX_BODY_BYTES)).json,
  });
  docsRoutes(app, {
    version: options.version,
    publicUrls: config.PUBLIC_URL,
    limits: config,
    endpoints: [...httpRoutes, ...streamEndpoints],
  });
  const admission = observation.watch(admissionControl.reject.bind(admissionControl));
  const server = createHttpServer({
    fetch: observation.observe(app.fetch, (method, path) => routeOf(app, method, path)),
    admission,
    limits: config,
  });
  let metrics: { close(): void } | undefined;
  let url: string;
  try {
    metrics = await observation.serve({
      streams: () => quota.total,
      streamLag: () => subscriptions.lag(),
      stateCacheBytes: () => forum.cachedBytes,
      isWritable: () => forum.store.meta.writeFailure === undefined,
      damagedStreams: () => forum.store.log.damages.size,
      connections: () => promisify(server.getConnections).call(server),
      relayer: () => chain.status().relayer,
      isHealthy: () => chain.status().ok,
      lostLogLines: options.lostLogLines ?? (() => 0),
      node: () => forum.store.nodes?.state(),
      catchUps: () => forum.catchUps,
    });
    url = await listen(server, config.PORT, config.HOST);
  } catch (error) {
    metrics?.close();
    await verifier.close();
    throw error;
  }
  const [publicUrl = url] = config.PUBLIC_URL;
  logger.info(
    {
      version: options.version,
      mode: config.NODE_ENV,
      database: config.DATABASE_URL === undefined ? config.DATABASE_PATH : describeDatabase(config.DATABASE_URL),
      chain: chain.name,
      publicUrl,
      docs: `${publicUrl}/docs`,
    },
    'started',
  );
  const clockTimer = persistClockRegularly(forum);
  return { forum, url, reloadAccess: () => access.reload({ isForced: true }), stop };

  /**
   * Rejects new requests, then finishes those under way, and closes the log last. What stands still is left behind, as a crash would leave it:
   * the relayer's next start continues from there. Throws when moves under way were not written in time.
   */
  async function stop(): Promise<void> {
    const [grace, commitsEnd] = [pause(STOP_GRACE_MS), pause(COMMITS_MS_MAX)];
    admissionControl.close();
    access.close();
    const closed = new Promise((resolve) => server.close(resolve));
    const sweeping = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
    subscriptions.stop();
    todoWatches.close();
    await Promise.race([Promise.all([closed, chain.stop()]), grace]);
    clearInterval(sweeping);
    liveness.close();
    server.closeAllConnections();
    metrics?.close();
    await verifier.close();
    const isLate = await Promise.race([forum.close(), commitsEnd.then(() => true)]);
    clearInterval(clockTimer);
    await Promise.race([persistClock(forum), pause(CLOCK_MS_MAX)]);
    await forum.store.close();
    if (isLate) throw new Error('stopped without a response to moves under way: they were not written in time');
  }
}

/** Does not keep the process alive. */
function pause(millis: Millis): Promise<void> {
  return setTimeout(millis, undefined, { ref: false });
}

/** One after the other, however long one takes. */
function persistClockRegularly(forum: Forum): NodeJS.Timeout {
  let isPersisting = false;
  return setInterval(async () => {
    if (isPersisting) return;
    isPersisting = true;
    await persistClock(forum);
    isPersisting = false;
  }, CLOCK_PERSIST_INTERVAL_MS).unref();
}

/** A time that can't be written, on a full disk for example, is written with a later event or at the next interval. */
async function persistClock(forum: Forum): Promise<void> {
  await forum.persistClock().catch(() => {});
}

const CLOCK_BEHIND_MS = 60_000;

function warnIfClockIsBehind(forum: Forum, logger: Logger): void {
  const behindMillis = forum.now() - forum.wallClock();
  if (behindMillis < CLOCK_BEHIND_MS) return;
  const logTime = new Date(forum.now()).toISOString();
  logger.warn({ behindMillis, logTime }, 'the clock is behind the log: phases do not advance until it catches up');
}

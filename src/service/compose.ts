// Composes the service from its parts. The caller opens and closes the store, chain, threads and ports. Services in the same process share no
// state.
import type { Logger } from 'pino';
import { CallbackCaller } from '../callbacks/caller.ts';
import { Poster, type PostOptions } from '../callbacks/post.ts';
import { CallbackRegistry } from '../callbacks/registry.ts';
import { resolveName } from '../callbacks/resolver.ts';
import { Results } from '../callbacks/results.ts';
import type { CallbackSigner } from '../callbacks/signing.ts';
import { type Config, readConfigured } from '../config.ts';
import { toBlockList } from '../connections/client-address.ts';
import { Liveness } from '../connections/liveness.ts';
import { Quota } from '../connections/quota.ts';
import { docsRoutes } from '../docs/routes.ts';
import { Forum } from '../forum/forum.ts';
import type { ClockProblem, TimeSource } from '../forum/service-clock.ts';
import { ResponseCache } from '../html/response-cache.ts';
import { AccessList } from '../http/access-list.ts';
import { createApp, httpRoutes, routeOf } from '../http/app.ts';
import { compressHistory } from '../http/compression.ts';
import type { LogStatus } from '../http/context.ts';
import { readGate, readGateRoutes } from '../http/read-gate.ts';
import { baseUrlOf, readBody } from '../http/request.ts';
import { RateLimit, RequestLimits } from '../http/request-limits.ts';
import { CORS_HEADERS } from '../http/response.ts';
import { TodoWatches } from '../http/todo-watches.ts';
import type { ServiceKeys } from '../keys/service-keys.ts';
import { SOLE_LEASE, type Store } from '../log/store.ts';
import { mcpRoutes } from '../mcp/routes.ts';
import { WITHOUT_CHAIN } from '../page/chamber-model.ts';
import { pageRoutes } from '../page/routes.ts';
import { MainThreadMeter } from '../process/main-thread.ts';
import { PublishLoop } from '../publisher/publish-loop.ts';
import type { PublishedHistory } from '../publisher/published-history.ts';
import { checkpointSigner } from '../publisher/publisher.ts';
import { Witnesses } from '../publisher/witnesses.ts';
import { streamEndpoints } from '../stream/endpoints.ts';
import { streamRoutes } from '../stream/routes.ts';
import type { SignatureVerifierPool } from '../verifier/verifier.ts';
import { unavailable } from '../vocabulary/errors.ts';
import { Withholder } from '../withholding/withholder.ts';
import type { ChainLink } from './chain.ts';
import { lastBackupAt, readLists, readWitnesses } from './configured.ts';
import { logFailure, openObservation } from './observation.ts';

export interface CoreOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly store: Store;
  readonly keys: ServiceKeys;
  readonly clock: TimeSource;
  /** Called if memory and disk may differ: the process must stop. */
  readonly onFatal: (error: unknown) => void;
}

export type Core = ReturnType<typeof composeCore>;

/** Composes the parts that the relayer needs before the HTTP application exists. */
export function composeCore({ config, logger, store, keys, clock, onFatal }: CoreOptions) {
  const observation = openObservation(config, logger);
  const { onBatch } = observation;
  readLists(config);
  const access = readConfigured(null, () => openAccessList(config, logger));
  const agentRate = new RateLimit({
    perSecond: config.RATE_PER_DID_PER_SECOND,
    burst: config.RATE_PER_DID_BURST,
  });
  const meter = new MainThreadMeter();
  const forum = new Forum({
    store,
    meter,
    agentRate,
    accountChangeRate: new RateLimit({
      perSecond: config.ACCOUNT_CHANGES_PER_DID_PER_MINUTE / 60,
      burst: config.ACCOUNT_CHANGES_PER_DID_BURST,
    }),
    clock,
    clockJumpMillis: config.CLOCK_JUMP_SECONDS * 1000,
    onClockProblem: (problem) => logClock(logger, problem),
    onFatal,
    permits: access.permits.bind(access),
    pinnedKeys: (now) => keys.pins(now),
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
  return { config, logger, forum, meter, keys, access, agentRate, observation };
}

function logClock(logger: Logger, problem: ClockProblem | undefined): void {
  if (problem === undefined) logger.info({}, 'alert cleared: the clock is right');
  else logger.error({ aheadMillis: Math.round(problem.aheadMillis) }, `alert raised: ${problem.reason}`);
}

function openAccessList(config: Config, logger: Logger): AccessList {
  return new AccessList({
    allowFile: config.ALLOW_LIST_FILE,
    banFile: config.BAN_LIST_FILE,
    onRead: (counts) => logger.info(counts, 'access lists reloaded'),
    onProblem: ({ message: reason }, repeats) =>
      logger.error({ reason, ...repeats }, 'alert raised: cannot read an access list: the previous one stays in force'),
  });
}

export const NO_CHAIN: ChainLink = {
  name: 'none',
  status: () => ({ ok: true, details: { chain: null } }),
  start: () => {},
  stop: async () => {},
};

interface CompositionOptions {
  readonly chain: ChainLink;
  readonly verifier: Pick<SignatureVerifierPool, 'verify' | 'sign'>;
  readonly version: string;
  /** The log's name, which may depend on the address that the service listens on. */
  readonly origin: Promise<string>;
  readonly history: PublishedHistory;
  /** Replaces the machine's name servers and certificate authorities for callbacks. */
  readonly callbackNetwork?: Partial<Pick<PostOptions, 'resolve' | 'ca'>>;
}

export type Composition = ReturnType<typeof composeService>;

/** Composes a service that does not listen yet. */
export function composeService(core: Core, options: CompositionOptions) {
  const { chain, verifier, version, origin, history } = options;
  // Callers that await `origin` get the error.
  origin.catch(() => {});
  const { config, logger, forum, meter, keys, access, agentRate, observation } = core;
  forum.haltIf(() => history.problem && unavailable(NOT_AS_PUBLISHED, history.problem));
  const requestLimits = openRequestLimits(config, { logger, meter });
  const networkOf = requestLimits.networkOf.bind(requestLimits);
  const liveness = new Liveness({
    pingIntervalMs: config.STREAM_PING_SECONDS * 1000,
    deadAfterMs: config.STREAM_DEAD_SECONDS * 1000,
  });
  const todoWatches = new TodoWatches(forum);
  const inTurn = readGate({
    networkOf,
    inFlight: new Quota(config.READS_PER_ADDRESS_MAX, 'reads from your address'),
    workError: requestLimits.workError.bind(requestLimits),
  });
  let receipts = 0;
  const shared = { version, publicUrls: config.PUBLIC_URL };
  const responses = new ResponseCache(config.RESPONSE_CACHE_BYTES_MAX);
  forum.store.withholding.onWithheld(() => responses.empty());
  const withholder = new Withholder({ path: config.WITHHOLD_FILE, forum, keys, logger });
  const { registry, calling } = openCallbacks(core, options);
  const app = createApp(
    {
      ...shared,
      forum,
      keys,
      origin,
      verify: verifier.verify,
      sign: (seed, text) => {
        receipts++;
        return verifier.sign(seed, text);
      },
      networkOf,
      describeClient: requestLimits.describeClient.bind(requestLimits),
      requireRegistration: requestLimits.requireRegistration.bind(requestLimits),
      env: config.NODE_ENV,
      allowUnsigned: config.DEV_ALLOW_UNSIGNED,
      maxBodyBytes: config.MAX_BODY_BYTES,
      chainStatus: chain.status,
      logStatus: () => logStatus(forum),
      checkpoint: () => history.newest(forum.store.tree),
      agentRate,
      responses,
      callbacks: registry,
      todoWatches,
      waits: new Quota(config.WAITS_PER_DID_MAX, 'waiting requests of this agent'),
      liveness,
      onFailure: (failure) => logFailure(logger, failure),
    },
    (first) => {
      readGateRoutes(first, inTurn);
      compressHistory(first);
      return pageRoutes(first, {
        forum,
        headers: CORS_HEADERS,
        responses,
        relayerProblem: () => (chain === NO_CHAIN ? WITHOUT_CHAIN : chain.status().relayer?.reason),
      });
    },
  );
  const quota = new Quota(config.STREAMS_PER_ADDRESS_MAX, 'streams from your address');
  const streams = streamRoutes(app, {
    forum,
    liveness,
    quota,
    networkOf,
    workWait: requestLimits.workWait.bind(requestLimits),
    meter,
    headers: CORS_HEADERS,
  });
  const readJson: Parameters<typeof mcpRoutes>[1]['readJson'] = async (c) =>
    (await readBody(c, config.MAX_BODY_BYTES)).json;
  mcpRoutes(app, {
    ...shared,
    baseUrlOf: (c) => baseUrlOf(c, shared.publicUrls),
    headers: CORS_HEADERS,
    readJson,
    inTurn,
  });
  docsRoutes(app, { ...shared, responses, limits: config, endpoints: [...httpRoutes, ...streamEndpoints] });
  const publishing = new PublishLoop({
    tree: forum.store.tree,
    log: forum.store.log,
    claimLease: () => forum.store.nodes?.lease('publisher') ?? SOLE_LEASE,
    signer: async () => checkpointSigner(await origin, keys.current('checkpoints', forum.now())),
    history,
    logger,
    witnesses: new Witnesses({ witnesses: readWitnesses(config), tree: forum.store.tree, logger }),
  });
  return {
    ...core,
    app,
    publishing,
    withholder,
    calling,
    /** Serves an admitted request. */
    fetch: observation.observe(app.fetch, (method, path) => routeOf(app, method, path)),
    requestLimit: observation.watch(requestLimits.reject.bind(requestLimits)),
    connectionWait: requestLimits.connectionWait.bind(requestLimits),
    /** The sources of metrics that these parts provide. */
    sources: {
      streams: () => quota.total,
      streamLag: () => streams.lag(),
      stateCacheBytes: () => forum.cachedBytes,
      isWritable: () => forum.writeFailure === undefined,
      damagedStreams: () => forum.store.log.damagedStreams.size,
      relayer: () => chain.status().relayer,
      spending: () => chain.status().spending,
      isHealthy: () => chain.status().ok && forum.clockProblem() === undefined,
      clockAheadSeconds: () => (forum.clockProblem()?.aheadMillis ?? 0) / 1000,
      areListsRead: () => access.isRead,
      withholding: () => withholder.state(),
      isWithholdingFinished: () => withholder.state().problem === undefined,
      lastBackupAt: () => lastBackupAt(config),
      node: () => {
        const state = forum.store.nodes?.state();
        return state && { ...state, catchUps: forum.catchUps };
      },
      isStandbyAsynchronous: () => forum.store.nodes?.state().isStandbyAsynchronous ?? false,
      publishing: () => publishing.state(),
      receipts: () => receipts,
      calling: () => calling.state(),
    },
    /** Rejects new requests, and ends streams and long polls. */
    drain: () => {
      requestLimits.close();
      access.close();
      streams.stop();
      todoWatches.close();
    },
    /** Called after `drain` and the grace period for requests in progress. */
    close: () => {
      liveness.close();
      meter.stop();
    },
  };
}

function openCallbacks(
  { config, forum, keys, logger }: Core,
  { verifier, version, callbackNetwork }: CompositionOptions,
) {
  const { store } = forum;
  const isOn = config.CALLBACKS === 'on';
  const rules = { isDevelopment: config.NODE_ENV === 'development' };
  const random = Math.random;
  const poster = new Poster({ resolve: resolveName, ...callbackNetwork, ...rules, random });
  const signer: CallbackSigner = { keys, sign: verifier.sign, now: forum.now, version };
  const perHour = (burst: number) => new RateLimit({ perSecond: burst / 3_600, burst });
  const registry = new CallbackRegistry({
    ...{ isOn, poster, signer, rules, store: store.callbacks },
    challengesPerDid: perHour(config.CALLBACK_CHALLENGES_PER_DID_PER_HOUR),
    challengesPerNetwork: perHour(config.CALLBACK_CHALLENGES_PER_ADDRESS_PER_HOUR),
    maxAgeSeconds: config.SIGNATURE_MAX_AGE_SECONDS,
    onSet: () => calling.searchSoon(),
  });
  const calling = new CallbackCaller({
    ...{ isOn, forum, poster, signer, rules, random, logger, results: new Results(store.callbacks) },
    dutiesMax: config.CALLBACK_DUTIES_MAX,
    perSecond: config.CALLBACKS_PER_SECOND_MAX,
    claimLease: () => store.nodes?.lease('callbacks') ?? SOLE_LEASE,
  });
  return { registry, calling };
}

const NOT_AS_PUBLISHED =
  'the log is not the one that was published: no moves are accepted until an operator intervenes';

const ASYNCHRONOUS_STANDBY =
  'the database has a standby, but synchronous_standby_names is empty: if the standby is promoted, acknowledged moves may be missing';

function logStatus(forum: Forum): LogStatus | undefined {
  const reason = forum.haltedBy?.message;
  const isAsynchronous = forum.store.nodes?.state().isStandbyAsynchronous === true;
  if (reason === undefined && !isAsynchronous) return undefined;
  return { ...(reason && { reason }), ...(isAsynchronous && { warning: ASYNCHRONOUS_STANDBY }) };
}

const UNTRUSTED_PROXY =
  'requests with X-Forwarded-For or Forwarded come from an address that TRUSTED_PROXIES lacks: if it is your proxy, all its clients share the limits of one address';

function openRequestLimits(config: Config, { logger, meter }: Pick<Core, 'logger' | 'meter'>): RequestLimits {
  return new RequestLimits({
    meter,
    onUntrustedProxy: (address) => logger.warn({ address, variable: 'TRUSTED_PROXIES' }, UNTRUSTED_PROXY),
    trustedProxies: toBlockList(config.TRUSTED_PROXIES),
    perAddress: { perSecond: config.RATE_PER_ADDRESS_PER_SECOND, burst: config.RATE_PER_ADDRESS_BURST },
    workPerAddress: { perSecond: config.WORK_MS_PER_ADDRESS_PER_SECOND, burst: config.WORK_MS_PER_ADDRESS_BURST },
    registrationsPerAddress: {
      perSecond: config.REGISTRATIONS_PER_ADDRESS_PER_MINUTE / 60,
      burst: config.REGISTRATIONS_PER_ADDRESS_BURST,
    },
  });
}

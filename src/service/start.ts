// Starts the service: opens its store, chain, threads and ports in this order, and closes them again if a later step fails.
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import { makeFolder } from '../files/durable-file.ts';
import type { Forum } from '../forum/forum.ts';
import type { TimeSource } from '../forum/service-clock.ts';
import { createHttpServer, listen } from '../http/http-server.ts';
import { StreamDamaged } from '../log/damage.ts';
import { originOf } from '../log/log-id.ts';
import { describeDatabase } from '../log/postgres/database-url.ts';
import type { PublishedTree } from '../log/published-tree.ts';
import { migrateDatabase } from '../log/sqlite/database-file.ts';
import type { OnMigration } from '../log/sqlite/migration.ts';
import { openSqliteStore } from '../log/sqlite/store.ts';
import { ElapsedTime } from '../process/elapsed-time.ts';
import { PublishedHistory } from '../publisher/published-history.ts';
import { TreeDamaged } from '../publisher/publisher.ts';
import { createVerifier, type SignatureVerifierPool } from '../verifier/verifier.ts';
import type { Millis } from '../vocabulary/values.ts';
import { restateStubs } from '../withholding/restate.ts';
import type { ChainLink } from './chain.ts';
import type { CheckInput, ProbedChain } from './checks/check.ts';
import { requireStartable } from './checks/checks.ts';
import { isDefaultPath } from './checks/database.ts';
import { type Core, composeCore, composeService, NO_CHAIN } from './compose.ts';
import { servicePort } from './configured.ts';
import { checkpointCopyOf, openKeys } from './key-files.ts';
import { persistClockRegularly } from './persist-clock.ts';
import { stopService, UnusedConnections } from './stop.ts';

export interface ServiceOptions {
  /** The environment from which the configuration was read. Misspelled names in it are reported. */
  readonly env?: CheckInput['env'];
  readonly config: Config;
  readonly logger: Logger;
  readonly version: string;
  readonly clock?: TimeSource;
  /** The number of log lines that could not be written. */
  readonly lostLogLines?: () => number;
  /** Called if memory and disk may differ: the process must stop. */
  readonly onFatal: (error: unknown) => void;
}

export interface Service {
  readonly forum: Forum;
  readonly url: string;
  reloadLists(): void;
  /** Finishes requests in progress, closes streams with 1012 and releases the log. */
  stop(): Promise<void>;
}

export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, logger, onFatal, env = {} } = options;
  const time = options.clock?.time ?? Date.now;
  const checkedChain = await requireStartable({ env, config, time, isRunning: false }, logger);
  if (isDefaultPath(config)) await makeFolder(dirname(config.DATABASE_PATH));
  const { store, source } = await openStore(options);
  try {
    const clock = options.clock ?? source;
    const keys = await openKeys(config, store, clock.time());
    const restated = await restateStubs(store, keys, clock.time());
    if (restated > 0) logger.info({ restated }, 'signed stubs of withheld lines again, because this log is a copy');
    const core = composeCore({ config, logger, store, keys, clock, onFatal });
    const { logId } = store.log;
    const path = checkpointCopyOf(config, logId);
    const history = new PublishedHistory({ logId, path, keys: () => keys.all('checkpoints') });
    await requirePublished(history, store.tree);
    store.nodes?.checkConnections((tree) => requirePublished(history, tree));
    const chain = await openChain(core.forum, options, checkedChain);
    return await serve(options, { core, chain, history }).catch(async (error: unknown) => {
      await chain.stop();
      throw error;
    });
  } catch (error) {
    await store.close();
    throw error;
  }
}

const MIGRATION_REPORT_MS = 5_000;

/** Logs the beginning, and then the progress at intervals, because a large database takes minutes. */
function reportMigration(logger: Logger): OnMigration {
  let reportedAt = Number.NEGATIVE_INFINITY;
  return (progress) => {
    if (performance.now() < reportedAt + MIGRATION_REPORT_MS) return;
    reportedAt = performance.now();
    logger.info(progress, 'migrating the database');
  };
}

async function openStore({ config, logger, onFatal }: ServiceOptions) {
  const onDamage = ({ stream, eventId, message }: StreamDamaged) =>
    logger.error({ stream, eventId }, `alert raised: ${message}; restore a backup`);
  const elapsed = new ElapsedTime().read;
  const { DATABASE_URL: url, DATABASE_CONNECTIONS_MAX: connectionsMax, CHAMBER_ID_MIN: chamberIdMin } = config;
  if (url === undefined) {
    const options = { chamberIdMin, onCorruption: onFatal, onDamage };
    await migrateDatabase(config.DATABASE_PATH, reportMigration(logger));
    return { store: openSqliteStore(config.DATABASE_PATH, options), source: { time: () => Date.now(), elapsed } };
  }
  // Loaded only when used, because it would slow down every other start.
  const { openPostgresStore } = await import('../log/postgres/store.ts');
  const drifts = new RepeatedLog();
  const onDrift = (driftMillis: Millis) =>
    drifts.report('drift', '', (repeats) => {
      logger.warn(
        { driftMillis, ...repeats },
        "this machine's clock drifted from the database's, which the service uses",
      );
    });
  const unusable = new RepeatedLog();
  const onChecked = (problem: Error | undefined) => {
    if (problem === undefined) return unusable.end('database', () => logger.info('the database is used again'));
    unusable.report('database', problem.message, (repeats) => {
      const database = describeDatabase(url);
      logger.error({ database, ...repeats }, `alert raised: ${problem.message}: nothing is written there`);
    });
  };
  const store = await openPostgresStore({ url, connectionsMax, chamberIdMin, onDamage, onDrift, onChecked, elapsed });
  return { store, source: { time: () => store.clock.now(), elapsed } };
}

/** Ignores damage, which is reported where it is found and does not mean that the log is a different one. */
async function requirePublished(history: PublishedHistory, tree: PublishedTree): Promise<void> {
  try {
    await history.prove(tree);
  } catch (error) {
    if (!(error instanceof TreeDamaged || error instanceof StreamDamaged)) throw error;
  }
}

async function openChain(
  forum: Forum,
  { config, logger }: ServiceOptions,
  checked: ProbedChain | undefined,
): Promise<ChainLink> {
  if (config.CHAIN === 'none') return NO_CHAIN;
  // Loaded only when used, because it takes half of the start-up time.
  const { openChain } = await import('./chain.ts');
  return openChain({ config, forum, logger }, checked);
}

interface Parts {
  readonly core: Core;
  readonly chain: ChainLink;
  readonly history: PublishedHistory;
}

/** Opens the verifier and serves. A failed start leaves no threads behind. */
async function serve(options: ServiceOptions, parts: Parts): Promise<Service> {
  const verifier = openVerifier(options.config, options.logger);
  try {
    return await serveWith(verifier, options, parts);
  } catch (error) {
    await verifier.close();
    throw error;
  }
}

async function serveWith(
  verifier: SignatureVerifierPool,
  options: ServiceOptions,
  { core, chain, history }: Parts,
): Promise<Service> {
  const { config, logger, version } = options;
  const origin = Promise.withResolvers<string>();
  const composed = composeService(core, { chain, verifier, version, origin: origin.promise, history });
  const { forum, access, meter } = composed;
  meter.start();
  const server = createHttpServer({ ...composed, now: forum.now, limits: config });
  const unused = new UnusedConnections(server);
  let metrics: { close(): void } | undefined;
  let url: string;
  try {
    metrics = await composed.observation.serve({
      ...composed.sources,
      connections: () => promisify(server.getConnections).call(server),
      lostLogLines: options.lostLogLines ?? (() => 0),
    });
    url = await listen(server, servicePort(config));
    const { meta, log } = core.forum.store;
    origin.resolve(await originOf(meta, log.logId, config.PUBLIC_URL[0] ?? url));
  } catch (error) {
    metrics?.close();
    server.close().closeAllConnections();
    composed.drain();
    composed.close();
    throw error;
  }
  composed.publishing.start();
  composed.withholder.start();
  composed.calling.start(config.PUBLIC_URL[0] ?? url);
  chain.start();
  logStart(options, { chain, url });
  const clockTimer = persistClockRegularly(forum, logger);
  return {
    forum,
    url,
    reloadLists: () => {
      access.reload({ isForced: true });
      composed.withholder.reload();
    },
    stop: () => stopService({ composed, server, unused, chain, verifier, metrics, clockTimer }),
  };
}

function openVerifier(config: Config, logger: Logger): SignatureVerifierPool {
  const losses = new RepeatedLog();
  return createVerifier({
    ...(config.VERIFIER_THREADS === undefined ? {} : { threads: config.VERIFIER_THREADS }),
    onThreadLost: (reason) =>
      losses.report('thread', reason, (repeats) => {
        logger.warn({ reason, ...repeats }, 'a verifier thread ended; node:crypto verifies in its place');
      }),
  });
}

function logStart(
  { config, logger, version }: ServiceOptions,
  { chain, url }: { readonly chain: ChainLink; readonly url: string },
): void {
  const [publicUrl = url] = config.PUBLIC_URL;
  logger.info(
    {
      version,
      mode: config.NODE_ENV,
      database: config.DATABASE_URL === undefined ? config.DATABASE_PATH : describeDatabase(config.DATABASE_URL),
      chain: chain.name,
      callbacks: config.CALLBACKS,
      publicUrl,
      docs: `${publicUrl}/docs`,
    },
    'started',
  );
}

// The service's metrics for Prometheus. Counting a request takes about a microsecond; gauges are read when Prometheus scrapes.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { detach } from '../process/detach.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface Sources {
  readonly streams: () => number;
  /** The largest number of events that a consumer is behind the head. */
  readonly streamLag: () => Promise<number>;
  readonly connections: () => Promise<number>;
  /** Estimated, in bytes. */
  readonly stateCacheBytes: () => number;
  readonly isWritable: () => boolean;
  readonly damagedStreams: () => number;
  /** Undefined without a relayer. */
  readonly relayer: () => { readonly pending: number; readonly failed: number; readonly leads: boolean } | undefined;
  /** Undefined without a relayer. */
  readonly spending: () => SpendingState | undefined;
  /** Whether the latest read of the access lists succeeded; true without lists. */
  readonly areListsRead: () => boolean;
  readonly withholding: () => WithholdingState;
  /** Unix seconds; NaN if no stamp file is configured, 0 without a backup. */
  readonly lastBackupAt: () => number;
  /** Undefined if only one process uses the log. */
  readonly node: () => NodeState | undefined;
  /** The number of times that cached states were updated with events from other nodes. */
  readonly catchUps: () => number;
  readonly publishing: () => PublishingState;
  readonly receipts: () => number;
  readonly calling: () => CallbackState;
  readonly isHealthy: () => boolean;
  readonly clockAheadSeconds: () => number;
  /** Lines of the service's own log that could not be written. */
  readonly lostLogLines: () => number;
}

interface SpendingState {
  readonly transactions: number;
  readonly reverts: number;
  readonly ether: number;
  readonly attemptsMax: number;
  readonly jobEtherMax: number;
  readonly alerts: number;
  /** NaN if unknown. */
  readonly balanceEther: number;
  readonly transactionsLeft: number;
}

interface WithholdingState {
  /** Withheld lines of the whole log. */
  readonly withheld: number;
  /** Entries in WITHHOLD_FILE that can't be applied. */
  readonly failedEntries: number;
  readonly isListRead: boolean;
  /** Undefined if every withholding is finished. */
  readonly problem: string | undefined;
}

interface PublishingState {
  /** Lines covered by the stored checkpoint. */
  readonly size: number;
  /** Time since the checkpoint last covered all lines. */
  readonly lagSeconds: number;
  /** The stored tiles do not match the stored checkpoint: the service publishes nothing until they are repaired. */
  readonly isTreeDamaged: boolean;
  /** The log is not the published one: the service signs nothing and rejects moves. */
  readonly hasSecondHistory: boolean;
  /** Whether the latest attempt to publish and to copy the checkpoint succeeded. */
  readonly ok: boolean;
  readonly leads: boolean;
  readonly cosignatures: number;
  readonly failures: number;
  readonly lateCosignatures: number;
}

interface CallbackState {
  /** Since the start. */
  readonly delivered: number;
  readonly failedTries: number;
  readonly queued: number;
  /** How long the oldest queued duty has waited for its first attempt. */
  readonly oldestSeconds: number;
  /** Whether this node delivers; undefined if callbacks are off. */
  readonly leads: boolean | undefined;
}

interface NodeState {
  readonly isStandbyAsynchronous: boolean;
  readonly isListening: boolean;
  readonly reconnects: number;
  readonly connectionsInUse: number;
  readonly connectionsAwaited: number;
}

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const APPEND_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const BATCH_EVENTS = [1, 2, 4, 8, 16, 32, 64, 128];

/** Includes Node's default metrics: memory, garbage collection, event loop delay. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

export function createMetricsServer(registry: Registry): Server {
  return createServer((request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    const respond = (text: string) => response.writeHead(200, { 'Content-Type': registry.contentType }).end(text);
    detach(registry.metrics().then(respond, () => response.writeHead(500).end()));
  });
}

export interface ObservedRequest {
  readonly incoming: IncomingMessage;
  /** 101 for an accepted upgrade. */
  readonly status: number;
  /** The time from the request's head to the response's head. */
  readonly millis: Millis;
}

/** Returns the path pattern of the route; undefined if no route matches. */
export type RouteOf = (method: string, path: string) => string | undefined;

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT']);
const OTHER = 'other';

/**
 * Bounds the labels: the route's pattern stands for all ids, and `other` for unserved methods and paths. Caches the series, because
 * prom-client would rebuild the key of the series for each request.
 */
export function requestObserver(registry: Registry, routeOf: RouteOf): (answered: ObservedRequest) => void {
  const histogram = new Histogram({
    name: 'chambers_request_duration_seconds',
    help: 'Time from a request to its response; the histogram’s count is the number of requests',
    labelNames: ['method', 'route', 'status'],
    buckets: REQUEST_SECONDS,
    registers: [registry],
  });
  const series = new Map<string, { observe(seconds: number): void }>();
  return ({ incoming, status, millis }) => {
    const { method: sent = '', url = '' } = incoming;
    const method = METHODS.has(sent) ? sent : OTHER;
    const [path = ''] = url.split('?', 1);
    const route = routeOf(method, path) ?? OTHER;
    const name = `${method} ${route} ${status}`;
    const known = series.get(name) ?? histogram.labels({ method, route, status: String(status) });
    series.set(name, known);
    known.observe(millis / 1000);
  };
}

export function rejectionCounter(registry: Registry): (reason: string) => void {
  const rejections = new Counter({
    name: 'chambers_requests_rejected_total',
    help: 'Requests rejected before any route: address_rate (429) or stopping (503)',
    labelNames: ['reason'],
    registers: [registry],
  });
  return (reason) => rejections.inc({ reason });
}

interface Batch {
  readonly events: number;
  readonly conflicts: number;
  readonly redecided: number;
  readonly appendMillis: Millis;
}

export function batchObserver(registry: Registry): (batch: Batch) => void {
  const registers = [registry];
  const appended = new Counter({
    name: 'chambers_events_appended_total',
    help: 'Events written to the log',
    registers,
  });
  const batch = new Histogram({
    name: 'chambers_batch_events',
    help: 'Events in one transaction',
    buckets: BATCH_EVENTS,
    registers,
  });
  const append = new Histogram({
    name: 'chambers_append_duration_seconds',
    help: 'Time of one transaction with its fsync',
    buckets: APPEND_SECONDS,
    registers,
  });
  const conflicts = new Counter({
    name: 'chambers_append_conflicts_total',
    help: 'Chambers and agents to which another node appended first, counted per batch',
    registers,
  });
  const redecided = new Counter({
    name: 'chambers_commands_redecided_total',
    help: 'Moves decided again after a conflict',
    registers,
  });
  return (report) => {
    const { events, appendMillis } = report;
    conflicts.inc(report.conflicts);
    redecided.inc(report.redecided);
    if (events === 0) return;
    appended.inc(events);
    batch.observe(events);
    append.observe(appendMillis / 1000);
  };
}

export function addGauges(registry: Registry, sources: Sources): void {
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number | boolean | Promise<number>) => {
    const collect = async () => {
      metric.set(Number(await read()));
    };
    const metric = new Gauge({ name, help, registers, collect });
  };
  const counter = (name: string, help: string, read: () => number) => {
    const collect = () => {
      metric.reset();
      metric.inc(read());
    };
    const metric = new Counter({ name, help, registers, collect });
  };
  const { relayer, publishing, node, spending, withholding, calling } = sources;
  gauge('chambers_stream_consumers', 'Open streams', sources.streams);
  gauge('chambers_stream_lag_events', 'Events that the slowest consumer is behind', sources.streamLag);
  gauge('chambers_connections', 'Open connections', sources.connections);
  gauge('chambers_state_cache_bytes', 'Estimated memory of cached chambers and agents', sources.stateCacheBytes);
  gauge('chambers_log_writable', 'Whether the latest write to the log succeeded', sources.isWritable);
  gauge('chambers_damaged_streams', 'Chambers and agents whose events were found damaged', sources.damagedStreams);
  gauge(
    'chambers_healthy',
    'Whether GET /health reports ok: the relayer can work, and the clock is right',
    sources.isHealthy,
  );
  gauge(
    'chambers_clock_ahead_seconds',
    "How far the clock is ahead of the service's time while the service decides nothing because of it, otherwise 0",
    sources.clockAheadSeconds,
  );
  gauge('chambers_relayer_pending', 'Transactions not yet sent or confirmed', () => relayer()?.pending ?? 0);
  gauge('chambers_relayer_failed', 'Deployments that failed since the start', () => relayer()?.failed ?? 0);
  gauge('chambers_relayer_leads', 'Whether this node holds the lease and relays; NaN without a chain', () =>
    Number(relayer()?.leads),
  );
  gauge('chambers_relayer_alerts', 'Conditions that need an operator; GET /health lists them', () => {
    return spending()?.alerts ?? 0;
  });
  counter(
    'chambers_relayer_transactions_total',
    'Signed transactions, including replacements with a higher fee',
    () => {
      return spending()?.transactions ?? 0;
    },
  );
  counter('chambers_relayer_reverts_total', 'Transactions that reverted in a block', () => spending()?.reverts ?? 0);
  counter('chambers_relayer_spent_ether_total', 'Fees of confirmed transactions, in ether', () => {
    return spending()?.ether ?? 0;
  });
  gauge('chambers_relayer_attempts_max', 'The largest number of nonces that one open job has used', () => {
    return spending()?.attemptsMax ?? 0;
  });
  gauge('chambers_relayer_job_ether_max', 'The highest fees that one open job has paid, in ether', () => {
    return spending()?.jobEtherMax ?? 0;
  });
  gauge(
    'chambers_relayer_balance_ether',
    "Balance of the relayer's account, in ether; NaN if this node does not relay",
    () => Number(spending()?.balanceEther),
  );
  gauge(
    'chambers_relayer_transactions_left',
    'Number of transactions that the balance can pay for at current fees; NaN if this node does not relay',
    () => Number(spending()?.transactionsLeft),
  );
  gauge('chambers_access_lists_read', 'Whether the latest read of the access lists succeeded', sources.areListsRead);
  gauge('chambers_withheld_lines', 'Lines of the log whose texts are withheld', () => withholding().withheld);
  gauge(
    'chambers_withhold_entries_failed',
    'Lines of WITHHOLD_FILE that name no text to withhold',
    () => withholding().failedEntries,
  );
  gauge(
    'chambers_withhold_list_read',
    'Whether the latest read of WITHHOLD_FILE succeeded',
    () => withholding().isListRead,
  );
  gauge(
    'chambers_withholding_finished',
    'Whether every text that WITHHOLD_FILE names is withheld and erased',
    () => withholding().problem === undefined,
  );
  gauge(
    'chambers_last_backup_timestamp_seconds',
    'Modification time of BACKUP_STAMP_FILE, in Unix seconds; 0 if the file is missing, NaN if the variable is not set',
    sources.lastBackupAt,
  );
  counter('chambers_receipts_signed_total', 'Receipts signed', sources.receipts);
  gauge('chambers_checkpoint_size', 'Lines covered by the stored checkpoint', () => publishing().size);
  gauge(
    'chambers_checkpoint_lag_seconds',
    'Time since the stored checkpoint last covered all lines that this node knew of',
    () => publishing().lagSeconds,
  );
  gauge(
    'chambers_tree_damaged',
    'Whether the stored tiles do not match the checkpoint',
    () => publishing().isTreeDamaged,
  );
  gauge(
    'chambers_second_history',
    'Whether the log does not extend a published checkpoint',
    () => publishing().hasSecondHistory,
  );
  gauge(
    'chambers_standby_asynchronous',
    'Whether the database has a standby that commits do not wait for',
    () => node()?.isStandbyAsynchronous ?? false,
  );
  gauge(
    'chambers_checkpoint_ok',
    'Whether the latest attempt to publish and copy a checkpoint succeeded',
    () => publishing().ok,
  );
  gauge(
    'chambers_publisher_leads',
    'Whether this node holds the lease and publishes checkpoints',
    () => publishing().leads,
  );
  counter('chambers_witness_cosignatures_total', 'Cosignatures added to checkpoints', () => publishing().cosignatures);
  counter('chambers_witness_failures_total', 'Failed requests to witnesses', () => publishing().failures);
  counter(
    'chambers_witness_late_total',
    'Cosignatures dropped because the next checkpoint was already published',
    () => publishing().lateCosignatures,
  );
  counter('chambers_callbacks_delivered_total', 'Duties whose callback got a 2xx response', () => calling().delivered);
  counter('chambers_callbacks_failed_total', 'Callback attempts without a 2xx response', () => calling().failedTries);
  gauge('chambers_callbacks_queued', 'Duties waiting for a callback attempt', () => calling().queued);
  gauge(
    'chambers_callbacks_oldest_seconds',
    'How long the oldest queued duty has waited for its first callback attempt',
    () => calling().oldestSeconds,
  );
  gauge('chambers_callbacks_leads', 'Whether this node delivers callbacks; NaN if they are off', () =>
    Number(calling().leads),
  );
  counter(
    'chambers_diagnostic_lines_lost_total',
    "Lines of the service's own log that were lost because standard error did not accept them",
    sources.lostLogLines,
  );
  if (node() === undefined) return;
  counter('chambers_catch_ups_total', 'Updates of cached states with events from other nodes', sources.catchUps);
  gauge(
    'chambers_wakeups_connected',
    'Whether this node receives wake-ups from other nodes',
    () => node()?.isListening ?? false,
  );
  counter(
    'chambers_wakeups_reconnects_total',
    'Times that the connection for wake-ups was lost',
    () => node()?.reconnects ?? 0,
  );
  gauge('chambers_database_connections_used', 'Connections in use', () => node()?.connectionsInUse ?? 0);
  gauge(
    'chambers_database_connections_awaited',
    'Reads and writes waiting for a connection',
    () => node()?.connectionsAwaited ?? 0,
  );
}

// The service's metrics for Prometheus. Counting a request takes about a microsecond; gauges are read when Prometheus scrapes.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { detach } from '../process/detach.ts';
import type { Millis } from '../vocabulary/values.ts';

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

/** A counter if the name ends in `_total`, otherwise a gauge. `absent` is the value while the source has no state. */
type Metric = readonly [name: string, help: string, absent?: number];

/** The metrics that are one value each. */
const VALUES = {
  streams: ['chambers_stream_consumers', 'Open streams'],
  streamLag: ['chambers_stream_lag_events', 'Events that the slowest consumer is behind'],
  connections: ['chambers_connections', 'Open connections'],
  stateCacheBytes: ['chambers_state_cache_bytes', 'Estimated memory of cached chambers and agents'],
  isWritable: ['chambers_log_writable', 'Whether the latest write to the log succeeded'],
  damagedStreams: ['chambers_damaged_streams', 'Chambers and agents whose events were found damaged'],
  isHealthy: ['chambers_healthy', 'Whether GET /health reports ok: the relayer can work, and the clock is right'],
  clockAheadSeconds: [
    'chambers_clock_ahead_seconds',
    "How far the clock is ahead of the service's time while the service decides nothing because of it, otherwise 0",
  ],
  areListsRead: ['chambers_access_lists_read', 'Whether the latest read of the access lists succeeded'],
  isWithholdingFinished: [
    'chambers_withholding_finished',
    'Whether every text that WITHHOLD_FILE names is withheld and erased',
  ],
  isStandbyAsynchronous: [
    'chambers_standby_asynchronous',
    'Whether the database has a standby that commits do not wait for',
  ],
  lastBackupAt: [
    'chambers_last_backup_timestamp_seconds',
    'Modification time of BACKUP_STAMP_FILE, in Unix seconds; 0 if the file is missing, NaN if the variable is not set',
  ],
  receipts: ['chambers_receipts_signed_total', 'Receipts signed'],
  lostLogLines: [
    'chambers_diagnostic_lines_lost_total',
    "Lines of the service's own log that were lost because standard error did not accept them",
  ],
} as const satisfies Readonly<Record<string, Metric>>;

/** The metrics that are members of a part's state. */
const STATES = {
  relayer: {
    pending: ['chambers_relayer_pending', 'Transactions not yet sent or confirmed'],
    failed: ['chambers_relayer_failed', 'Deployments that failed since startup'],
    leads: ['chambers_relayer_leads', 'Whether this node holds the lease and relays; NaN without a chain', Number.NaN],
  },
  spending: {
    alerts: ['chambers_relayer_alerts', 'Conditions that need an operator; GET /health lists them'],
    transactions: [
      'chambers_relayer_transactions_total',
      'Signed transactions, including replacements with a higher fee',
    ],
    reverts: ['chambers_relayer_reverts_total', 'Transactions that reverted in a block'],
    ether: ['chambers_relayer_spent_ether_total', 'Fees of confirmed transactions, in ether'],
    attemptsMax: ['chambers_relayer_attempts_max', 'The largest number of nonces that one open job has used'],
    jobEtherMax: ['chambers_relayer_job_ether_max', 'The highest fees that one open job has paid, in ether'],
    balanceEther: [
      'chambers_relayer_balance_ether',
      "Balance of the relayer's account, in ether; NaN if this node does not relay",
      Number.NaN,
    ],
    transactionsLeft: [
      'chambers_relayer_transactions_left',
      'Number of transactions that the balance can pay for at current fees; NaN if this node does not relay',
      Number.NaN,
    ],
  },
  withholding: {
    withheld: ['chambers_withheld_lines', 'Lines of the log whose texts are withheld'],
    failedEntries: ['chambers_withhold_entries_failed', 'Lines of WITHHOLD_FILE that name no text to withhold'],
    isListRead: ['chambers_withhold_list_read', 'Whether the latest read of WITHHOLD_FILE succeeded'],
  },
  publishing: {
    size: ['chambers_checkpoint_size', 'Lines covered by the stored checkpoint'],
    lagSeconds: [
      'chambers_checkpoint_lag_seconds',
      'Time since the stored checkpoint last covered all lines that this node knew of',
    ],
    isTreeDamaged: ['chambers_tree_damaged', 'Whether the stored tiles do not match the checkpoint'],
    hasSecondHistory: ['chambers_second_history', 'Whether the log does not extend a published checkpoint'],
    ok: ['chambers_checkpoint_ok', 'Whether the latest attempt to publish and copy a checkpoint succeeded'],
    leads: ['chambers_publisher_leads', 'Whether this node holds the lease and publishes checkpoints'],
    cosignatures: ['chambers_witness_cosignatures_total', 'Cosignatures added to checkpoints'],
    failures: ['chambers_witness_failures_total', 'Failed requests to witnesses'],
    lateCosignatures: [
      'chambers_witness_late_total',
      'Cosignatures dropped because the next checkpoint was already published',
    ],
  },
  calling: {
    delivered: ['chambers_callbacks_delivered_total', 'Duties whose callback got a 2xx response'],
    failedTries: ['chambers_callbacks_failed_total', 'Callback attempts without a 2xx response'],
    queued: ['chambers_callbacks_queued', 'Duties waiting for a callback attempt'],
    oldestSeconds: [
      'chambers_callbacks_oldest_seconds',
      'How long the oldest queued duty has waited for its first callback attempt',
    ],
    leads: ['chambers_callbacks_leads', 'Whether this node delivers callbacks; NaN if they are off'],
  },
  /** Left out if only one process uses the log. */
  node: {
    catchUps: ['chambers_catch_ups_total', 'Updates of cached states with events from other nodes'],
    isListening: ['chambers_wakeups_connected', 'Whether this node receives wake-ups from other nodes'],
    reconnects: ['chambers_wakeups_reconnects_total', 'Times that the connection for wake-ups was lost'],
    connectionsInUse: ['chambers_database_connections_used', 'Connections in use'],
    connectionsAwaited: ['chambers_database_connections_awaited', 'Reads and writes waiting for a connection'],
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Metric>>>>;

type Value = number | boolean | undefined;
type State<Table> = { readonly [Member in keyof Table]: Value };

/** The functions that read the values and the states; a state is undefined if the service runs without the part. */
export type Sources = {
  readonly [Name in keyof typeof VALUES]: () => Value | Promise<Value>;
} & {
  readonly [Part in keyof typeof STATES]: () => State<(typeof STATES)[Part]> | undefined;
};

export function addMetrics(registry: Registry, sources: Sources): void {
  for (const [name, metric] of Object.entries(VALUES)) {
    addMetric(registry, metric, sources[name as keyof typeof VALUES]);
  }
  for (const [part, members] of Object.entries(STATES)) {
    // The entries have lost the connection between a part and its members.
    const read = sources[part as keyof typeof STATES] as () => Readonly<Record<string, Value>> | undefined;
    if (part === 'node' && read() === undefined) continue;
    for (const [member, metric] of Object.entries<Metric>(members)) {
      const [, , absent = 0] = metric;
      addMetric(registry, metric, () => {
        const state = read();
        return state === undefined ? absent : state[member];
      });
    }
  }
}

function addMetric(registry: Registry, [name, help]: Metric, read: () => Value | Promise<Value>): void {
  const collect = async () => {
    const value = Number(await read());
    if (metric instanceof Gauge) metric.set(value);
    else {
      metric.reset();
      metric.inc(value);
    }
  };
  const options = { name, help, registers: [registry], collect };
  const metric = name.endsWith('_total') ? new Counter(options) : new Gauge(options);
}

// Collects metrics if METRICS_PORT is set, and logs each request at LOG_LEVEL=debug. Otherwise measures nothing.
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { BatchReport } from '../forum/pipeline.ts';
import type { Failure } from '../http/context.ts';
import { listen } from '../http/http-server.ts';
import type { RequestLimit } from '../http/request-hardening.ts';
import { requestIdOf } from '../http/response.ts';
import type { Fetch } from '../http/upgrades.ts';
import {
  addMetrics,
  batchObserver,
  createMetricsServer,
  createRegistry,
  type ObservedRequest,
  type RouteOf,
  rejectionCounter,
  requestObserver,
  type Sources,
} from '../metrics/metrics.ts';
import { metricsPort } from './configured.ts';

export interface Observation {
  readonly onBatch: ((report: BatchReport) => void) | undefined;
  /** Wraps the handler to measure requests. */
  observe(fetch: Fetch, routeOf: RouteOf): Fetch;
  /** Wraps the request limit to count rejections. */
  watch(requestLimit: RequestLimit): RequestLimit;
  /** Serves the metrics on a separate port, which need not be public. */
  serve(sources: Sources): Promise<{ close(): void }>;
}

export function openObservation(config: Config, logger: Logger): Observation {
  const address = metricsPort(config);
  const registry = address === undefined ? undefined : createRegistry();
  return {
    onBatch: registry && batchObserver(registry),
    observe: (fetch, routeOf) => {
      const counted = registry && requestObserver(registry, routeOf);
      const logged = logger.isLevelEnabled('debug')
        ? (answered: ObservedRequest) => logRequest(logger, answered)
        : undefined;
      if (counted === undefined && logged === undefined) return fetch;
      return async (request, env) => {
        const started = performance.now();
        const response = await fetch(request, env);
        const isUpgraded = env.outgoing === undefined && response.status === 200;
        const status = isUpgraded ? 101 : response.status;
        const answered = { incoming: env.incoming, status, millis: performance.now() - started };
        counted?.(answered);
        logged?.(answered);
        return response;
      };
    },
    watch: (requestLimit) => {
      if (registry === undefined) return requestLimit;
      const count = rejectionCounter(registry);
      return (incoming) => {
        const rejection = requestLimit(incoming);
        if (rejection !== undefined) count(rejection.code === 'FORUM_ERR_RATE' ? 'address_rate' : 'stopping');
        return rejection;
      };
    },
    serve: async (sources) => {
      if (registry === undefined || address === undefined) return { close: () => {} };
      addMetrics(registry, sources);
      const server = createMetricsServer(registry);
      logger.info({ url: `${await listen(server, address)}/metrics` }, 'metrics');
      return { close: () => server.close().closeAllConnections() };
    },
  };
}

/** Logs no header and no body. */
function logRequest(logger: Logger, { incoming, status, millis }: ObservedRequest): void {
  logger.debug(
    {
      requestId: requestIdOf(incoming),
      method: incoming.method,
      path: loggedPath(incoming.url ?? ''),
      status,
      millis: Math.round(millis * 1000) / 1000,
    },
    'request',
  );
}

/** Logs a bug as an error, and a temporary condition, such as a full disk, as a warning. */
export function logFailure(logger: Logger, { error, path, ...request }: Failure): void {
  const level = request.status === 503 ? 'warn' : 'error';
  logger[level]({ ...request, path: loggedPath(path), err: error }, 'request failed');
}

/** Returns the path without the query and without parts that may be e-mail addresses. */
function loggedPath(target: string): string {
  const [path = ''] = target.split('?', 1);
  return path
    .split('/')
    .map((part) => (/@|%(25)*40/.test(part) ? '…' : part))
    .join('/');
}

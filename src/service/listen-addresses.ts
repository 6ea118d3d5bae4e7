// The addresses the service listens on, with the variables that set them.
import type { Config } from '../config.ts';
import type { ListenAddress } from '../http/http-server.ts';

export function servicePort({ PORT: port, HOST: host }: Config): ListenAddress {
  return { port, host, variables: { port: 'PORT', host: 'HOST' } };
}

export function metricsPort({ METRICS_PORT: port, METRICS_HOST: host }: Config): ListenAddress | undefined {
  return port === undefined ? undefined : { port, host, variables: { port: 'METRICS_PORT', host: 'METRICS_HOST' } };
}

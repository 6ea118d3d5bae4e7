// Starts the service as shipped, on a free port of 127.0.0.1, with the clock of the calling test or benchmark.
import { type Logger, pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import { type Service, type ServiceOptions, startService } from '../../src/service/start.ts';

/** Environment variables, as for `npm start`. */
export type Settings = Readonly<Record<string, string>>;

interface OpenOptions extends Partial<Pick<ServiceOptions, 'onFatal'>> {
  readonly clock: ServiceOptions['clock'] & {};
  readonly logger?: Logger;
}

/** Opens a service in memory and without a chain, unless the settings say otherwise. */
export function openService(settings: Settings, { logger, onFatal, ...options }: OpenOptions): Promise<Service> {
  const store = 'DATABASE_URL' in settings ? {} : { DATABASE_PATH: ':memory:' };
  return startService({
    config: readConfig({ PORT: '0', CHAIN: 'none', LOG_LEVEL: 'silent', ...store, ...settings }),
    logger: logger ?? pino({ level: 'silent' }),
    version: 'test',
    onFatal:
      onFatal ??
      ((error) => {
        throw error;
      }),
    ...options,
  });
}

// `npm start`: reads the environment, starts the service, and stops it on SIGTERM and SIGINT.
import './require-node.ts';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Logger, pino } from 'pino';
import { readConfig, VARIABLES } from './config.ts';
import { logDestination } from './log-format.ts';
import { type Service, startService } from './server.ts';
import { VERSION } from './version.ts';

const EXIT_FAILURE = 1;
/** Supervisors kill after ten seconds. */
const STOP_MS_MAX = 9_000;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const logger = pino({ level: config.LOG_LEVEL }, logDestination(config.LOG_FORMAT));
  if (config.DEV_ALLOW_UNSIGNED) {
    logger.warn(
      'DEV_ALLOW_UNSIGNED=true: requests with X-Dev-Did are accepted without a signature. Never in production.',
    );
  }
  // Only the default folder is created: a configured one that is missing is more likely a mistake.
  if (config.DATABASE_PATH === VARIABLES.DATABASE_PATH.fallback)
    mkdirSync(dirname(config.DATABASE_PATH), { recursive: true });
  const starting = startService({
    config,
    logger,
    version: VERSION,
    onFatal: (error) => {
      logger.fatal({ err: error }, 'memory and disk may differ: the process stops');
      process.exit(EXIT_FAILURE);
    },
  });
  endOnSignal(starting, logger);
  const service = await starting;
  process.stdout.write(`listening on ${service.url}\n`);
}

/** A signal during start-up stops the service and its chain as soon as they have started. */
function endOnSignal(starting: Promise<Service>, logger: Logger): void {
  let isStopping = false;
  const end = (signal: string) => {
    if (isStopping) return;
    isStopping = true;
    logger.info({ signal }, 'stopping');
    setTimeout(() => fail(new Error('the service did not stop in time')), STOP_MS_MAX).unref();
    starting.then((service) => service.stop()).then(() => process.exit(0), fail);
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on(
    'SIGHUP',
    () =>
      void starting.then(
        (service) => service.reloadAccess(),
        () => {},
      ),
  );
}

function fail(error: unknown): never {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(EXIT_FAILURE);
}

main().catch(fail);

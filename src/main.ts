// `npm start`: starts the service from the environment, and stops it on SIGTERM and SIGINT.
import { detach } from './process/detach.ts';
import './process/require-node.ts';
import { type Config, ConfigError, readConfig, VARIABLES } from './config.ts';
import { LogDestination } from './diagnostics/log-destination.ts';
import { type OwnLog, openOwnLog } from './diagnostics/log-format.ts';
import { logProcessEvents } from './diagnostics/process-log.ts';
import { EXIT_CONFIG, EXIT_FAILURE, exit } from './process/exit.ts';
import { VERSION } from './process/version.ts';
import { type Service, startService } from './service/start.ts';

/** Counted from the signal; supervisors kill the process after ten seconds. */
const STOP_MS_MAX = 9_000;
const { fallback: LOG_BUFFER_BYTES_MAX } = VARIABLES.LOG_BUFFER_BYTES_MAX;

function main(): void {
  let config: Config;
  try {
    config = readConfig(process.env);
  } catch (error) {
    const { LOG_FORMAT = VARIABLES.LOG_FORMAT.fallback } = process.env;
    fail(error, openOwnLog({ LOG_LEVEL: 'fatal', LOG_FORMAT, LOG_BUFFER_BYTES_MAX }));
  }
  const ownLog = openOwnLog(config);
  logProcessEvents(ownLog);
  run(config, ownLog).catch((error: unknown) => fail(error, ownLog));
}

async function run(config: Config, ownLog: OwnLog): Promise<void> {
  const { logger, fatalLogger, lostLines } = ownLog;
  const starting = startService({
    env: process.env,
    config,
    logger,
    version: VERSION,
    lostLogLines: lostLines,
    onFatal: (error) => {
      fatalLogger.fatal({ err: error }, 'memory and disk may differ: the process stops');
      exit(EXIT_FAILURE);
    },
  });
  endOnSignal(starting, ownLog);
  const service = await starting;
  const output = new LogDestination(process.stdout, {
    bufferBytesMax: config.LOG_BUFFER_BYTES_MAX,
    onLost: () => {},
  });
  output.write(`listening on ${service.url}\n`);
}

/** A signal during start-up stops the service once it has started. */
function endOnSignal(starting: Promise<Service>, ownLog: OwnLog): void {
  let isStopping = false;
  const end = (signal: string) => {
    if (isStopping) return;
    isStopping = true;
    ownLog.logger.info({ signal }, 'stopping');
    const failed = (error: unknown) => fail(error, ownLog);
    setTimeout(() => failed(new Error('the service did not stop in time')), STOP_MS_MAX).unref();
    starting.then((service) => service.stop()).then(() => exit(0), failed);
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  // A failed start ends the process in main().
  const reload = () => starting.catch(() => {}).then((service) => service?.reloadLists());
  process.on('SIGHUP', () => detach(reload()));
}

function fail(error: unknown, { fatalLogger }: OwnLog): never {
  fatalLogger.fatal(error instanceof Error ? error.message : String(error));
  exit(error instanceof ConfigError ? EXIT_CONFIG : EXIT_FAILURE);
}

main();

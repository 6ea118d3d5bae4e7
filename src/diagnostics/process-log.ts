// Routes warnings and console output of Node and libraries to the service's own log.
import { format } from 'node:util';
import { EXIT_FAILURE, exit } from '../process/exit.ts';
import type { OwnLog } from './log-format.ts';

const CONSOLE_LEVELS = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'error' } as const;

/** Omits other properties: a warning about leaked listeners contains a socket with its request headers. */
function plain({ name, message, stack, cause }: Error) {
  return { name, message, stack, ...(cause instanceof Error && { cause: cause.stack }) };
}

/** After an uncaught error, the process exits. */
export function logProcessEvents({ logger, fatalLogger }: OwnLog): void {
  // Replaces Node's own listener, which prints warnings.
  process
    .removeAllListeners('warning')
    .on('warning', (warning) => logger.warn({ err: plain(warning) }, 'Node warning'));
  // An unhandled rejection interrupts no other work, so the process continues. Code whose errors must stop the process calls `exit` itself.
  process.on('unhandledRejection', (error) => logger.error({ err: error }, 'unhandled promise rejection'));
  process.on('uncaughtException', (error, origin) => {
    fatalLogger.fatal({ err: error, origin }, 'unexpected error: the process stops');
    exit(EXIT_FAILURE);
  });
  for (const [method, level] of Object.entries(CONSOLE_LEVELS)) {
    console[method as keyof typeof CONSOLE_LEVELS] = (...words) =>
      logger[level]({ source: 'console' }, format(...words));
  }
}

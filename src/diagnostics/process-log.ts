// Routes what Node and libraries print, such as warnings and console output, to the service's own log.
import { format } from 'node:util';
import { EXIT_FAILURE, exit } from '../process/exit.ts';
import type { OwnLog } from './log-format.ts';

const CONSOLE_LEVELS = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'error' } as const;

/** Omits other members: a warning about leaked listeners contains a socket with its request headers. */
function plain({ name, message, stack, cause }: Error) {
  return { name, message, stack, ...(cause instanceof Error && { cause: cause.stack }) };
}

/** An uncaught error ends the process. */
export function logProcessEvents({ logger, lastWords }: OwnLog): void {
  // Replaces Node's own listener, which prints them.
  process
    .removeAllListeners('warning')
    .on('warning', (warning) => logger.warn({ err: plain(warning) }, 'warning of Node'));
  // An unhandled rejection has interrupted nothing, so the process continues. Errors that must end it call exit themselves.
  process.on('unhandledRejection', (error) => logger.error({ err: error }, 'unhandled rejection of a promise'));
  process.on('uncaughtException', (error, origin) => {
    lastWords.fatal({ err: error, origin }, 'unexpected error: the process stops');
    exit(EXIT_FAILURE);
  });
  for (const [method, level] of Object.entries(CONSOLE_LEVELS)) {
    console[method as keyof typeof CONSOLE_LEVELS] = (...words) =>
      logger[level]({ source: 'console' }, format(...words));
  }
}

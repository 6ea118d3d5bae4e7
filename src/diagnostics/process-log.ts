// What Node and libraries would print by themselves, in lines of no format, becomes lines of the service's own log.
import { format } from 'node:util';
import { EXIT_FAILURE, exit } from '../process/exit.ts';
import type { OwnLog } from './log-format.ts';

const CONSOLE_LEVELS = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'error' } as const;

/** Without its other fields: that of a leak of listeners holds a socket, with the headers of its requests. */
function plain({ name, message, stack, cause }: Error) {
  return { name, message, stack, ...(cause instanceof Error && { cause: cause.stack }) };
}

/** Logs what concerns the process as a whole: warnings, the console, and an uncaught error, which ends it. */
export function logProcessEvents({ logger, lastWords }: OwnLog): void {
  // Node's own listener prints them.
  process
    .removeAllListeners('warning')
    .on('warning', (warning) => logger.warn({ err: plain(warning) }, 'warning of Node'));
  // Nothing was interrupted: the process goes on. What must end it says so by itself.
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

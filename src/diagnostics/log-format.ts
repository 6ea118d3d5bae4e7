// The service's own log on standard error: JSON lines for programs, or text for people.
import { type Logger, levels, pino } from 'pino';
import type { Config } from '../config.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { LogDestination } from './log-destination.ts';

export interface OwnLog {
  readonly logger: Logger;
  /** Logs at any LOG_LEVEL why the process exits. */
  readonly fatalLogger: Logger;
  /** The number of lost lines since the start. */
  readonly lostLines: () => number;
}

type LogSettings = Pick<Config, 'LOG_LEVEL' | 'LOG_FORMAT' | 'LOG_BUFFER_BYTES_MAX'>;

export function openOwnLog(settings: LogSettings): OwnLog {
  const destination = new LogDestination(process.stderr, {
    bufferBytesMax: settings.LOG_BUFFER_BYTES_MAX,
    onLost: (lines) => logger.error({ lines }, 'log lines were lost because they could not be written'),
  });
  const pretty = { write: (line: string) => destination.write(`${prettyLine(line)}\n`) };
  const logger = pino({ level: settings.LOG_LEVEL }, settings.LOG_FORMAT === 'pretty' ? pretty : destination);
  process.once('exit', () => destination.close());
  return { logger, fatalLogger: logger.child({}, { level: 'fatal' }), lostLines: () => destination.lostLines };
}

/** Formats one of pino's lines as `time LEVEL message  name=value …`, followed by the stack of an error. */
export function prettyLine(line: string): string {
  const entry = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const { time, level, msg, err, pid: _, hostname: __, ...rest } = entry;
  const label = (levels.labels[Number(level)] ?? '').toUpperCase().padEnd(5);
  const values = Object.entries(rest).map(([name, value]) => `  ${name}=${visibleLine(asText(value))}`);
  const { stack } = (err ?? {}) as { readonly stack?: string };
  const trace = stack === undefined ? '' : `\n${stack.split('\n').map(visibleLine).join('\n')}`;
  return `${new Date(Number(time)).toISOString()} ${label} ${visibleLine(String(msg ?? ''))}${values.join('')}${trace}`;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

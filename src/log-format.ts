// The service's own log on standard error: JSON lines for programs, or text for people.
import { type DestinationStream, levels, pino } from 'pino';
import { plain } from './terminal.ts';

export function logDestination(format: string): DestinationStream {
  if (format !== 'pretty') return pino.destination(process.stderr.fd);
  return { write: (line) => void process.stderr.write(`${prettyLine(line)}\n`) };
}

/** A line of pino's as `time LEVEL message  name=value …`; an error's stack follows. */
export function prettyLine(line: string): string {
  const {
    time,
    level,
    msg,
    err,
    pid: _,
    hostname: __,
    ...rest
  } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const label = (levels.labels[Number(level)] ?? '').toUpperCase().padEnd(5);
  const values = Object.entries(rest).map(([name, value]) => `  ${name}=${plain(asText(value))}`);
  const { stack } = (err ?? {}) as { readonly stack?: string };
  const trace = stack === undefined ? '' : `\n${stack.split('\n').map(plain).join('\n')}`;
  return `${new Date(Number(time)).toISOString()} ${label} ${plain(String(msg ?? ''))}${values.join('')}${trace}`;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

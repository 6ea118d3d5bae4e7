// The metrics that alerts and dashboards query, and those that a running service exports.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { TestClock } from '../kit/clock.ts';
import { ROOT } from '../kit/programs.ts';
import { debating, run } from '../kit/service.ts';

interface Panel {
  /** A row of the dashboard, followed by its panels. */
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

/** The metrics of a single service, and those below the row for several nodes. */
export function dashboardExpressions(): { readonly alone: readonly string[]; readonly nodes: readonly string[] } {
  const { panels } = JSON.parse(readFileSync(join(ROOT, 'deploy/dashboard.json'), 'utf8')) as { panels: Panel[] };
  const row = panels.findIndex(({ type }) => type === 'row');
  const [alone, nodes] = [panels.slice(0, row), panels.slice(row)].map((some) =>
    some.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ) as [string[], string[]];
  return { alone, nodes };
}

/** Returns the metrics named in the text that a service with these settings does not export after a move and a rejected request. */
export async function missingMetrics(
  text: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const running = await run({ ...settings, METRICS_PORT: '0' }, new TestClock(), logger);
  await debating(running);
  const { url } = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'metrics');
  const samples = await (await fetch(url)).text();
  const exported = new Set([...namesIn(samples, /^(\w+)[{ ]/gm), ...namesIn(samples, /^# TYPE (\w+) counter/gm)]);
  const asked = namesIn(text, /\b((?:chambers|nodejs|process)_\w+)/g);
  if (asked.length === 0) throw new Error('the text names no metric');
  return asked.filter((name) => !exported.has(name));
}

export function namesIn(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name);
}

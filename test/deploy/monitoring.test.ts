// Alerts and dashboard ask only for metrics that a running service exports, and Prometheus accepts what they ask.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { TestClock } from '../kit/clock.ts';
import { ROOT } from '../kit/programs.ts';
import { debating, run } from '../kit/service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { isInstalled } from './recipes.ts';

const ALERTS = read('alerts.yaml');
const ALERT_TESTS = read('alerts.test.yaml');
const EXPRESSIONS = dashboardExpressions();

describe('the alert rules', () => {
  it('ask only for metrics of the service', async () => {
    expect(missing(ALERTS, await exportedNames())).toEqual([]);
  });

  it('each have a test, and a row in the manual', () => {
    const alerts = namesIn(ALERTS, /- alert: (\w+)/g);
    expect(alerts.length).toBeGreaterThan(0);
    expect(new Set(namesIn(ALERT_TESTS, /alertname: (\w+)/g))).toEqual(new Set(alerts));
    expect(namesIn(read('README.md'), /^\| `(Chambers\w+)`/gm)).toEqual(alerts);
  });

  it('fire when they should, and not before', ({ skip }) => {
    requirePromtool(skip);
    promtool('test', 'rules', join(ROOT, 'deploy/alerts.test.yaml'));
  });
});

describe('the dashboard', () => {
  it('asks only for metrics of the service', async () => {
    expect(EXPRESSIONS.length).toBeGreaterThan(0);
    expect(missing(EXPRESSIONS.join('\n'), await exportedNames())).toEqual([]);
  });

  it('has expressions that Prometheus accepts', ({ skip }) => {
    requirePromtool(skip);
    const rules = EXPRESSIONS.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '1m'),
    }));
    const file = join(temporaryFolder(), 'rules.yaml');
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    promtool('check', 'rules', file);
  });
});

function read(name: string): string {
  return readFileSync(join(ROOT, 'deploy', name), 'utf8');
}

interface Panel {
  readonly targets: readonly { readonly expr: string }[];
}

function dashboardExpressions(): readonly string[] {
  const { panels } = JSON.parse(read('dashboard.json')) as { readonly panels: readonly Panel[] };
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

function namesIn(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name);
}

/** The names of all samples of a service that has had a move and a rejected request. */
async function exportedNames(): Promise<ReadonlySet<string>> {
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const running = await run({ METRICS_PORT: '0' }, new TestClock(), logger);
  await debating(running);
  const { url } = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'metrics');
  const text = await (await fetch(url)).text();
  return new Set([...namesIn(text, /^(\w+)[{ ]/gm), ...namesIn(text, /^# TYPE (\w+) counter/gm)]);
}

function missing(text: string, exported: ReadonlySet<string>): readonly string[] {
  const asked = namesIn(text, /\b((?:chambers|nodejs|process)_\w+)/g);
  expect(asked.length).toBeGreaterThan(0);
  return asked.filter((name) => !exported.has(name));
}

function requirePromtool(skip: (condition: boolean, note: string) => void): void {
  if (!isInstalled('promtool')) console.log('skipped: promtool is not installed');
  skip(!isInstalled('promtool'), 'not installed: promtool');
}

function promtool(...words: readonly string[]): void {
  try {
    execFileSync('promtool', words, { stdio: 'pipe' });
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: Buffer; readonly stderr: Buffer };
    throw new Error(`promtool ${words.join(' ')}: ${stdout}${stderr}`);
  }
}

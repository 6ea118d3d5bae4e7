// The alerts and the dashboard query only metrics that a running service exports, and Prometheus accepts their expressions.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT, requireInstalled } from '../kit/programs.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { dashboardExpressions, missingMetrics, namesIn } from './metric-names.ts';

const ALERTS = read('alerts.yaml');
const ALERT_TESTS = read('alerts.test.yaml');
const { alone, nodes } = dashboardExpressions();

describe('the alert rules', () => {
  it('the alert rules query only metrics of the service', async () => {
    expect(await missingMetrics(ALERTS)).toEqual([]);
  });

  it('each alert rule has a test and a row in the manual', () => {
    const alerts = namesIn(ALERTS, /- alert: (\w+)/g);
    expect(alerts.length).toBeGreaterThan(0);
    expect(new Set(namesIn(ALERT_TESTS, /alertname: (\w+)/g))).toEqual(new Set(alerts));
    expect(namesIn(read('README.md'), /^\| `(Chambers\w+)`/gm)).toEqual(alerts);
  });

  it('the alert rules fire when they are due, and not before', ({ skip }) => {
    requireInstalled(skip, 'promtool');
    promtool('test', 'rules', join(ROOT, 'deploy/alerts.test.yaml'));
  });
});

describe('the dashboard', () => {
  it('the dashboard queries only metrics of the service', async () => {
    expect(await missingMetrics(alone.join('\n'))).toEqual([]);
  });

  it('the dashboard shows every metric that an alert queries', () => {
    const metrics = (text: string) => new Set(namesIn(text, /\b((?:chambers|nodejs|process)_\w+)/g));
    const asked = metrics(namesIn(ALERTS, /^ +expr: (.*)$/gm).join('\n'));
    expect(asked.size).toBeGreaterThan(0);
    const shown = metrics([...alone, ...nodes].join('\n'));
    expect([...asked].filter((name) => !shown.has(name))).toEqual([]);
  });

  it('Prometheus accepts the dashboard’s expressions', ({ skip }) => {
    requireInstalled(skip, 'promtool');
    const rules = [...alone, ...nodes].map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '1m'),
    }));
    const file = join(temporaryFolder(), 'rules.yaml');
    // A JSON document is also YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    promtool('check', 'rules', file);
  });
});

function read(name: string): string {
  return readFileSync(join(ROOT, 'deploy', name), 'utf8');
}

function promtool(...words: readonly string[]): void {
  try {
    execFileSync('promtool', words, { stdio: 'pipe' });
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: Buffer; readonly stderr: Buffer };
    throw new Error(`promtool ${words.join(' ')}: ${stdout}${stderr}`);
  }
}

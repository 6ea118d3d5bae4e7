// The metrics of a node among several.
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { dashboardExpressions, missingMetrics } from '../../deploy/metric-names.ts';
import { TestClock } from '../../kit/clock.ts';
import { endWakeUps, holdTable, temporaryPostgres } from '../../kit/postgres.ts';
import { call, debating, run } from '../../kit/service.ts';
import { eventually } from '../../kit/until.ts';

it('the dashboard for several nodes uses only metrics that nodes export', async () => {
  const settings = { DATABASE_PATH: '', DATABASE_URL: await temporaryPostgres() };
  expect(await missingMetrics(dashboardExpressions().nodes.join('\n'), settings)).toEqual([]);
});

it('the metrics count a node’s conflicts, moves decided again, catch-ups and lost wake-ups', async () => {
  const DATABASE_URL = await temporaryPostgres();
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const settings = { DATABASE_PATH: '', DATABASE_URL };
  const clock = new TestClock();
  const [one, other] = [await run({ ...settings, METRICS_PORT: '0' }, clock, logger), await run(settings, clock)];
  const { url } = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'metrics');
  const metric = async (name: string) => {
    const text = await (await fetch(url)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  const { by, id } = await debating(one);
  let comments = 0;
  await eventually(async () => {
    const both = [one, other].map((node) =>
      call(node, by, ['POST', `/chambers/${id}/debate`, { comment: `${comments++}` }]),
    );
    await Promise.all(both);
    expect(await metric('chambers_append_conflicts_total')).toBeGreaterThan(0);
  }, 30_000);
  expect(await metric('chambers_commands_redecided_total')).toBeGreaterThan(0);
  expect(await metric('chambers_catch_ups_total')).toBeGreaterThan(0);
  // A read of this node may be waiting at the moment of a scrape.
  await eventually(async () => expect(await metric('chambers_database_connections_awaited')).toBe(0), 10_000);
  const lock = await holdTable(DATABASE_URL, 'unplaced_events');
  const waiting = call(one, by, ['POST', `/chambers/${id}/debate`, { comment: 'waits' }]);
  // The node may use a second connection to place events.
  await eventually(async () => expect(await metric('chambers_database_connections_used')).toBeGreaterThan(0), 10_000);
  await lock.end();
  await waiting;
  await eventually(async () => expect(await metric('chambers_wakeups_connected')).toBe(1), 10_000);
  await endWakeUps(DATABASE_URL);
  await eventually(async () => expect(await metric('chambers_wakeups_reconnects_total')).toBeGreaterThan(0), 10_000);
});

// Metrics on a separate port, and log lines without secrets.
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { TestClock } from '../kit/clock.ts';
import { consume } from '../kit/consumers.ts';
import { debating, newAgent, run } from '../kit/service.ts';
import { get } from '../kit/wire.ts';

/** Returns the service's log after the line about its start; each line is JSON. */
function logTo(lines: string[], level: string) {
  const write = (line: string) => {
    if (JSON.parse(line).msg !== 'started') lines.push(line);
  };
  return pino({ level }, { write });
}

async function scrape(lines: readonly string[]): Promise<string> {
  const metrics = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'metrics');
  return (await fetch(metrics.url)).text();
}

describe('metrics', () => {
  it('the metrics count requests by route and status, batches, events and streams', async () => {
    const lines: string[] = [];
    const running = await run({ METRICS_PORT: '0' }, new TestClock(), logTo(lines, 'info'));
    const { id, debate } = await debating(running);
    const consumer = await consume(running, `/chambers/${id}/stream?after=0`);
    await debate('Yes.');
    await consumer.until(3);
    await get(running.url, '/chambers/77');
    await get(running.url, '/no/such/path');
    for (const method of ['DELETE', 'PATCH']) await fetch(`${running.url}/chambers/77`, { method });
    const text = await scrape(lines);
    const requests = (method: string, route: string, status: number) =>
      `chambers_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`;
    for (const expected of [
      `${requests('POST', '/register', 200)} 1`,
      `${requests('POST', '/chambers/:id/debate', 200)} 1`,
      `${requests('GET', '/chambers/:id', 404)} 1`,
      `${requests('GET', '/chambers/:id/stream', 101)} 1`,
      `${requests('GET', 'other', 404)} 1`,
      `${requests('other', 'other', 405)} 2`,
      'chambers_events_appended_total 4',
      'chambers_batch_events_sum 4',
      'chambers_append_duration_seconds_count 4',
      'chambers_stream_consumers 1',
      'chambers_stream_lag_events 0',
      'chambers_log_writable 1',
      'chambers_damaged_streams 0',
      'chambers_healthy 1',
      'chambers_relayer_pending 0',
      'chambers_relayer_failed 0',
      'chambers_relayer_leads Nan',
      'chambers_append_conflicts_total 0',
    ]) {
      expect(text.split('\n')).toContain(expected);
    }
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m);
    expect(text).not.toContain(`/chambers/${id}`);
  });

  it('the metrics count requests rejected before any route', async () => {
    const lines: string[] = [];
    const limits = { RATE_PER_ADDRESS_PER_SECOND: '1', RATE_PER_ADDRESS_BURST: '1' };
    const { url } = await run({ METRICS_PORT: '0', ...limits }, new TestClock(), logTo(lines, 'info'));
    for (const status of [200, 429, 429]) expect((await get(url, '/health')).status).toBe(status);
    expect(await scrape(lines)).toContain('chambers_requests_rejected_total{reason="address_rate"} 2');
  });

  it('the metrics are not served without a port', async () => {
    const lines: string[] = [];
    const { url } = await run({}, new TestClock(), logTo(lines, 'info'));
    expect((await get(url, '/metrics')).status).toBe(404);
    expect(lines).toEqual([]);
  });
});

describe('the log', () => {
  it('the log at debug has a line for each request, without e-mail address, signature or body', async () => {
    const lines: string[] = [];
    const running = await run({}, new TestClock(), logTo(lines, 'debug'));
    const { debate } = await debating(running);
    await debate('A comment that must not be logged.');
    await newAgent(running);
    await get(running.url, '/health?secret=in-the-query');
    const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    expect(requests.at(-1)).toMatchObject({ method: 'GET', path: '/health', status: 200 });
    expect(new Set(requests.map(({ requestId }) => requestId)).size).toBe(requests.length);
    expect(lines.join('')).not.toMatch(/example\.org|sig1|must not be logged|in-the-query/);
  });

  it('the log at info has no line for rejected requests', async () => {
    const lines: string[] = [];
    const { url } = await run({}, new TestClock(), logTo(lines, 'info'));
    await get(url, '/chambers/77');
    await get(url, '/me');
    expect(lines).toEqual([]);
  });

  it.each(['/ideas/ops@mail-secret.example.org', '/ideas/ops%40mail-secret.example.org', '/ideas/ops%2540mail-secret'])(
    'the log hides a possible e-mail address in the path %s',
    async (path) => {
      const lines: string[] = [];
      const running = await run({}, new TestClock(), logTo(lines, 'debug'));
      running.service.forum.store.lists.findIdea = () => Promise.reject(new Error('inner detail'));
      expect((await get(running.url, `${path}?chamberId=1`)).status).toBe(500);
      const logged = lines.map((line) => JSON.parse(line));
      expect(logged).toMatchObject([
        { msg: 'request failed', path: '/ideas/…' },
        { msg: 'request', path: '/ideas/…' },
      ]);
      expect(lines.join('')).not.toContain('mail-secret');
    },
  );

  it('the log names a failed request by the id in its response', async () => {
    const lines: string[] = [];
    const running = await run({}, new TestClock(), logTo(lines, 'info'));
    running.service.forum.chambers = () => Promise.reject(new Error('inner detail'));
    const { status, body, headers } = await get(running.url, '/chambers');
    expect({ status, body }).toEqual({ status: 500, body: { error: 'FORUM_ERR_INTERNAL', detail: 'internal error' } });
    const logged = JSON.parse(lines[0] ?? '');
    expect(logged).toMatchObject({ level: 50, requestId: headers.get('x-request-id'), path: '/chambers', status: 500 });
    expect(logged.err.message).toBe('inner detail');
  });
});

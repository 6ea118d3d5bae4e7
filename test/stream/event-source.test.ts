// Tests the lines over plain HTTP: server-sent events and pages of NDJSON.
import { describe, expect, it, vi } from 'vitest';
import { openSource, openText, page, take } from '../kit/consumers.ts';
import { debating, type Running, run, sendRaw } from '../kit/service.ts';

async function runWithFive(settings: Readonly<Record<string, string>> = {}) {
  const running = await run(settings);
  const chamber = await debating(running);
  for (const comment of ['third', 'fourth', 'fifth']) await chamber.debate(comment);
  return { running, ...chamber, stream: `/chambers/${chamber.id}/stream`, events: `/chambers/${chamber.id}/events` };
}

function ids(lines: readonly string[]): readonly number[] {
  return lines.map((line) => JSON.parse(line).eventId);
}

async function rejection({ url }: Running, path: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(url + path, { headers });
  return {
    status: response.status,
    cors: response.headers.get('access-control-allow-origin'),
    body: await response.json(),
  };
}

describe('server-sent events', () => {
  it('server-sent events have the line as data and its event id as id: history, then live', async () => {
    const { running, stream, events, debate } = await runWithFive();
    const source = await openSource(running, `${stream}?after=2`);
    const before = await take(source, 3);
    await debate('sixth');
    const received = [...before, ...(await take(source, 1))];
    expect(received.map(({ id }) => id)).toEqual(['3', '4', '5', '6']);
    expect(received.map(({ data }) => data)).toEqual((await page(running, events)).slice(2));
  });

  it('server-sent events resume with Last-Event-ID, which takes precedence over after', async () => {
    const { running, stream } = await runWithFive();
    const [first] = await take(await openSource(running, `${stream}?after=0`, { 'last-event-id': '4' }), 1);
    expect(first?.id).toBe('5');
    const beyond = { accept: 'text/event-stream', 'last-event-id': '6' };
    const detail = expect.stringMatching(/^Last-Event-ID: 6 is beyond/);
    expect(await rejection(running, `${stream}?after=0`, beyond)).toMatchObject({ body: { detail } });
  });

  it('server-sent events without a cursor carry only new events', async () => {
    const { running, stream, debate } = await runWithFive();
    const source = await openSource(running, stream);
    const eventId = await debate('sixth');
    expect((await take(source, 1))[0]?.id).toBe(String(eventId));
  });

  it.each([
    ['/chambers/99/stream?after=0', {}, 404, 'FORUM_ERR_NOT_FOUND'],
    ['/chambers/1/stream?after=6', {}, 400, 'FORUM_ERR_VALIDATION'],
    ['/chambers/1/stream', { 'last-event-id': 'x' }, 400, 'FORUM_ERR_VALIDATION'],
    ['/chambers/1/stream', { 'last-event-id': '6' }, 400, 'FORUM_ERR_VALIDATION'],
    ['/chambers/1/stream?after=0&log=another', {}, 409, 'FORUM_ERR_CONFLICT'],
  ])('a request for server-sent events is rejected: %s with %j: %i', async (path, headers, status, error) => {
    const { running } = await runWithFive();
    const answer = await rejection(running, path, { accept: 'text/event-stream', ...headers });
    expect(answer).toMatchObject({ status, cors: '*', body: { error } });
  });

  it('comments between server-sent events keep the connection alive', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { running, stream, debate } = await runWithFive({ STREAM_PING_SECONDS: '30', STREAM_DEAD_SECONDS: '60' });
    const text = (await openText(running, `${stream}?after=4`)).getReader();
    expect((await text.read()).value).toMatch(/^id: 5\ndata: .*\n\n$/);
    vi.advanceTimersByTime(30_000);
    expect((await text.read()).value).toBe(': keep-alive\n');
    vi.useRealTimers();
    await debate('sixth');
    expect((await text.read()).value).toMatch(/^id: 6\ndata: .*\n\n$/);
  });

  it('server-sent events end when the service stops', async () => {
    const { running, stream } = await runWithFive();
    const source = await openSource(running, `${stream}?after=4`);
    await take(source, 1);
    const [end] = await Promise.all([source.next(), running.stop()]);
    expect(end.done).toBe(true);
  });

  it('HEAD for server-sent events opens no stream', async () => {
    const { running, stream } = await runWithFive({ STREAMS_PER_ADDRESS_MAX: '1' });
    const options = { method: 'HEAD', headers: { accept: 'text/event-stream' } };
    for (const _ of [1, 2]) expect((await fetch(running.url + stream, options)).status).toBe(200);
    expect(await take(await openSource(running, `${stream}?after=4`), 1)).toHaveLength(1);
  });
});

describe('the path of the stream', () => {
  it('a stream request with neither a handshake nor an Accept header is rejected', async () => {
    const { running, stream } = await runWithFive();
    expect(await rejection(running, stream)).toMatchObject({
      status: 400,
      cors: '*',
      body: { error: 'FORUM_ERR_VALIDATION' },
    });
  });

  it('a handshake without Connection: Upgrade is rejected', async () => {
    const { running, stream } = await runWithFive();
    const half = `GET ${stream} HTTP/1.1\r\nHost: forum.test\r\nUpgrade: websocket\r\nConnection: close\r\n\r\n`;
    expect(await sendRaw(running.url, half)).toMatch(/^HTTP\/1.1 400 .*FORUM_ERR_VALIDATION/s);
  });
});

describe('pages of events', () => {
  it('a page of events has the lines as stored, from the first to the head', async () => {
    const { running, id, events } = await runWithFive();
    const response = await fetch(running.url + events);
    const { ndjson } = await running.service.forum.store.log.readPage(id, 0, 100);
    expect(response.headers.get('content-type')).toMatch('application/x-ndjson');
    expect(response.headers.get('log-id')).toBe(running.service.forum.store.log.logId);
    expect(Buffer.from(await response.arrayBuffer()).equals(ndjson)).toBe(true);
  });

  it('a page of events starts after the cursor and has at most `limit` lines', async () => {
    const { running, events } = await runWithFive();
    expect(ids(await page(running, `${events}?after=1&limit=2`))).toEqual([2, 3]);
    expect(ids(await page(running, `${events}?after=4&limit=10000`))).toEqual([5]);
    expect(await page(running, `${events}?after=5`)).toEqual([]);
  });

  it('a page of events has up to 1,000 events by default', async () => {
    const { running, events, debate } = await runWithFive();
    for (let batch = 0; batch < 10; batch++) await Promise.all(Array.from({ length: 100 }, () => debate('more')));
    expect(ids(await page(running, events))).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 1));
    expect(ids(await page(running, `${events}?after=1000`))).toEqual([1_001, 1_002, 1_003, 1_004, 1_005]);
  });

  it.each([
    ['?limit=0', 400],
    ['?limit=10001', 400],
    ['?after=6', 400],
    ['?after=-1', 400],
    ['?after=1&log=another', 409],
    ['?after=x&log=another', 400],
    ['?limit=0&log=another', 400],
  ])('a page of events with %s is rejected with %i', async (query, status) => {
    const { running, events } = await runWithFive();
    expect(await rejection(running, events + query)).toMatchObject({ status, cors: '*' });
  });
});

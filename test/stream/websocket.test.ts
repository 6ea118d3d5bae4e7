// Tests WS /chambers/:id/stream (specification, Events) over real sockets.
import { describe, expect, it } from 'vitest';
import { recordCommit } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { consume, page, subscribe } from '../kit/consumers.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { call, debating, run, runDebating } from '../kit/service.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

async function subscribed(path: string) {
  const { running, id } = await runDebating();
  return subscribe(running, path.replace(':id', String(id)).replace(':log', running.service.forum.store.log.logId));
}

describe('the stream of a chamber', () => {
  it('a stream sends every event after the cursor, then live events', async () => {
    const { running, id, debate } = await runDebating();
    await debate('third');
    const consumer = await consume(running, `/chambers/${id}/stream?after=1`);
    await consumer.until(2);
    await debate('fourth');
    await consumer.until(3);
    expect(consumer.eventIds).toEqual([2, 3, 4]);
  });

  it('a stream after 0 sends every event', async () => {
    const { running, id } = await runDebating();
    const consumer = await consume(running, `/chambers/${id}/stream?after=0`);
    await consumer.until(2);
    expect(consumer.eventIds).toEqual([1, 2]);
  });

  it('a stream without a cursor, or with the head as cursor, sends only new events', async () => {
    const { running, id, debate } = await runDebating();
    const consumers = [
      await consume(running, `/chambers/${id}/stream`),
      await consume(running, `/chambers/${id}/stream?after=2`),
    ];
    await debate('third');
    for (const consumer of consumers) {
      await consumer.until(1);
      expect(consumer.eventIds).toEqual([3]);
    }
  });

  it('a stream sends each consumer the same lines, exactly as stored, one per message', async () => {
    const { running, id, debate } = await runDebating();
    await debate('“é” \u2028 😀');
    const consumers = await Promise.all(
      [0, 1].map((after) => consume(running, `/chambers/${id}/stream?after=${after}`)),
    );
    const [first, second] = consumers;
    await Promise.all([first?.until(3), second?.until(2)]);
    const lines = await page(running, `/chambers/${id}/events`);
    expect([first?.lines, second?.lines]).toEqual([lines, lines.slice(1)]);
  });

  it('a stream neither repeats nor misses an event while the log grows', async () => {
    const { running, id, debate } = await runDebating();
    const joined = [];
    for (let round = 0; round < 10; round++) {
      const writing = Promise.all(Array.from({ length: 30 }, (_, at) => debate(`${round}.${at}`)));
      joined.push(await consume(running, `/chambers/${id}/stream?after=${round}`));
      await writing;
    }
    const all = Array.from({ length: 302 }, (_, at) => at + 1);
    for (const [after, consumer] of joined.entries()) {
      await consumer.until(302 - after);
      expect(consumer.eventIds).toEqual(all.slice(after));
    }
  });

  it('a stream sends only events of its chamber, including service events', async () => {
    const { running, id } = await runDebating();
    const other = await debating(running);
    const consumer = await consume(running, `/chambers/${id}/stream`);
    await other.debate('elsewhere');
    running.clock.advance(10 * HOUR);
    await recordCommit(running.service.forum, id);
    await consumer.until(1);
    expect(consumer.lines.map((line) => JSON.parse(line))).toMatchObject([
      { eventId: 3, chamberId: id, type: 'chamber.committed' },
    ]);
  });

  it('a stream sends the log id in the handshake, and accepts it with a cursor', async () => {
    const { running, id } = await runDebating();
    const { logId } = running.service.forum.store.log;
    const outcome = await subscribe(running, `/chambers/${id}/stream?after=0&log=${logId}`);
    expect(outcome).toMatchObject({ headers: { 'log-id': logId, 'access-control-allow-origin': '*' } });
  });

  it('a stream ignores short messages and closes on a long one', async () => {
    const { running, id, debate } = await runDebating();
    const consumer = await consume(running, `/chambers/${id}/stream`);
    consumer.socket.send('hello');
    await debate('third');
    await consumer.until(1);
    consumer.socket.send('x'.repeat(10_000));
    expect(await consumer.closed()).toBe(1009);
  });
});

describe('a handshake', () => {
  it.each([
    ['/chambers/999/stream?after=0', 404, 'FORUM_ERR_NOT_FOUND'],
    ['/chambers/abc/stream', 404, 'FORUM_ERR_NOT_FOUND'],
    ['/nowhere', 404, 'FORUM_ERR_NOT_FOUND'],
    ['/chambers/:id/stream?after=-1', 400, 'FORUM_ERR_VALIDATION'],
    ['/chambers/:id/stream?after=x', 400, 'FORUM_ERR_VALIDATION'],
    ['/chambers/:id/stream?after=', 400, 'FORUM_ERR_VALIDATION'],
    ['/chambers/:id/stream?after=1.0', 400, 'FORUM_ERR_VALIDATION'],
    ['/chambers/:id/stream?after=3', 400, 'FORUM_ERR_VALIDATION'],
    ['/chambers/:id/stream?after=1&log=another', 409, 'FORUM_ERR_CONFLICT'],
  ])('a handshake for %s is rejected over HTTP, with %i and the usual body', async (path, status, error) => {
    expect(await subscribed(path)).toMatchObject({
      refusal: {
        status,
        body: { error, detail: expect.any(String) },
        headers: { 'access-control-allow-origin': '*', 'content-type': expect.stringContaining('application/json') },
      },
    });
  });
});

describe('a plain GET of the same URL', () => {
  it.each([
    ['/chambers/999/stream?after=0', 404],
    ['/chambers/:id/stream?after=-1', 400],
    ['/chambers/:id/stream?after=3', 400],
    ['/chambers/:id/stream?end=never', 400],
    ['/chambers/:id/stream?before=3', 400],
    ['/chambers/:id/stream?after=1&log=another', 409],
    ['/events?after=1:3', 400],
    ['/events?after=1:1&log=another', 409],
  ])('a plain GET of %s returns the error of the rejected handshake: %i', async (pattern, status) => {
    const { running, id } = await runDebating();
    const path = pattern.replace(':id', String(id));
    const rejected = await subscribe(running, path);
    expect(rejected).toMatchObject({ refusal: { status } });
    const response = await fetch(running.url + path);
    expect(rejected).toMatchObject({ refusal: { status: response.status, body: await response.json() } });
  });

  it('a plain GET of a stream returns 429 while the address may open no other stream', async () => {
    const { running, id } = await runDebating({ STREAMS_PER_ADDRESS_MAX: '1' });
    const path = `/chambers/${id}/stream?after=0`;
    await consume(running, path);
    for (const accept of ['*/*', 'text/event-stream']) {
      const response = await fetch(running.url + path, { headers: { accept } });
      expect({ status: response.status, body: await response.json() }).toMatchObject({
        status: 429,
        body: { error: 'FORUM_ERR_RATE' },
      });
      expect(response.headers.get('retry-after')).toBe('5');
    }
    const events = await fetch(`${running.url}/events`, { headers: { accept: 'text/event-stream' } });
    expect(events.status).toBe(429);
  });

  it('a plain GET of a stream that would accept a handshake reports the missing handshake', async () => {
    const { running, id } = await runDebating();
    const response = await fetch(`${running.url}/chambers/${id}/stream?after=2&end=settled`);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining('needs a WebSocket handshake') });
  });
});

describe('the head of a handshake', () => {
  const KEY = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';

  async function shake(version: string, fields: string): Promise<string> {
    const { running, id } = await runDebating();
    const socket = await RawSocket.open(running.url);
    const upgrade = 'Host: forum.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
    socket.write(`GET /chambers/${id}/stream?after=0 ${version}\r\n${upgrade}${KEY}${fields}\r\n`);
    return socket.receive(/\r\n\r\n./);
  }

  it.each([
    ['8', 'Sec-WebSocket-Version: 8\r\n'],
    ['12', 'Sec-WebSocket-Version: 12\r\n'],
    ['0x0d', 'Sec-WebSocket-Version: 0x0d\r\n'],
    ['none', ''],
  ])('a handshake with WebSocket version %s is rejected with the supported version', async (_version, fields) => {
    const answer = await shake('HTTP/1.1', fields);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toMatch(/\r\nsec-websocket-version: 13\r\n/i);
    expect(answer).toContain('{"error":"FORUM_ERR_VALIDATION","detail":"Sec-WebSocket-Version: must be 13"}');
  });

  it('a handshake may offer subprotocols, but the service selects none', async () => {
    const fields = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat, superchat\r\n';
    const answer = await shake('HTTP/1.1', fields);
    expect(answer).toMatch(/^HTTP\/1\.1 101 /);
    expect(answer).not.toMatch(/sec-websocket-protocol/i);
    expect(answer).toContain('chamber.created');
  });

  it('a handshake over HTTP/1.0 is not upgraded', async () => {
    const answer = await shake('HTTP/1.0', 'Sec-WebSocket-Version: 13\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(
      '{"error":"FORUM_ERR_VALIDATION","detail":"the stream needs a WebSocket handshake over HTTP/1.1',
    );
  });
});

describe('the end of the service', () => {
  it('a stopping service closes streams with 1012, and they resume from their cursor', async () => {
    const settings = { DATABASE_PATH: temporaryDatabase() };
    const { running, id, by, debate } = await runDebating(settings);
    const consumer = await consume(running, `/chambers/${id}/stream?after=0`);
    await debate('third');
    await consumer.until(3);
    await running.stop();
    expect(await consumer.closed()).toBe(1012);
    const again = await run(settings, running.clock);
    await call(again, by, ['POST', `/chambers/${id}/debate`, { comment: 'fourth' }]);
    const resumed = await consume(again, `/chambers/${id}/stream?after=3&log=${running.service.forum.store.log.logId}`);
    await resumed.until(1);
    expect(resumed.eventIds).toEqual([4]);
  });
});

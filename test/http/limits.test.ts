// The limits of the running service.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { auditService } from '../../src/audit/audit.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { consume, openSource, subscribe } from '../kit/consumers.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { call, newAgent, type Running, run, runDebating } from '../kit/service.ts';
import { Signer } from '../kit/signer.ts';
import { registrationOf } from '../kit/test-service.ts';
import { until } from '../kit/until.ts';
import { get, prepare, send } from '../kit/wire.ts';

const RATE_REFUSAL = { status: 429, body: { error: 'FORUM_ERR_RATE' } };

function me({ url, clock }: Running, by: Signer) {
  return send(url, prepare('GET', '/me', { by, publicUrl: url, now: clock.read() }));
}

describe('the values of a body', () => {
  it('the values of a body are limited to the number that auditors allow in a line, for bodies of any size', async () => {
    const { running, by, id } = await runDebating({ MAX_BODY_BYTES: '1000000' });
    const debate = (values: number) => {
      const body = { comment: 'x', refinement: { a: new Array(values).fill(0) } };
      const { url, clock } = running;
      return send(url, prepare('POST', `/chambers/${id}/debate`, { by, body, publicUrl: url, now: clock.read() }));
    };
    const detail = expect.stringContaining('40,000 values');
    expect(await debate(40_000)).toMatchObject({ status: 400, body: { error: 'FORUM_ERR_VALIDATION', detail } });
    expect(await debate(39_000)).toMatchObject({ status: 200 });
    const { chambers } = await auditService(running.url, { chamberId: id, now: running.clock.read });
    expect(chambers).toMatchObject([{ verdict: 'verified', moves: 3 }]);
  });
});

describe('the rate of an address', () => {
  it('the rate of an address beyond the limit causes 429 with Retry-After before any other check', async () => {
    const { url } = await run({ RATE_PER_ADDRESS_PER_SECOND: '1', RATE_PER_ADDRESS_BURST: '3' });
    for (let request = 0; request < 3; request++) expect((await get(url, '/health')).status).toBe(200);
    const refused = await get(url, '/nowhere');
    expect(refused).toMatchObject(RATE_REFUSAL);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(refused.headers.get('access-control-allow-origin')).toBe('*');
  });

  it('the rate of an address includes handshakes', async () => {
    const running = await run({ RATE_PER_ADDRESS_PER_SECOND: '1', RATE_PER_ADDRESS_BURST: '1' });
    await get(running.url, '/health');
    expect(await subscribe(running, '/chambers/1/stream')).toMatchObject({ refusal: RATE_REFUSAL });
  });
});

describe('the rate of an agent', () => {
  const settings = { RATE_PER_DID_PER_SECOND: '1', RATE_PER_DID_BURST: '4' };

  it('the rate of an agent beyond the limit causes 429 after the signature check, and does not affect other agents', async () => {
    const running = await run(settings);
    const [busy, other] = [await newAgent(running), await newAgent(running)];
    for (let request = 0; request < 3; request++) expect((await me(running, busy)).status).toBe(200);
    expect(await me(running, busy)).toMatchObject(RATE_REFUSAL);
    expect((await me(running, other)).status).toBe(200);
  });

  it('the rate of an agent cannot be exhausted by another caller in the agent’s name', async () => {
    const running = await run(settings);
    const agent = await newAgent(running);
    const forged = prepare('GET', '/me', { by: agent, publicUrl: 'http://elsewhere.test', now: running.clock.read() });
    for (let request = 0; request < 10; request++) expect((await send(running.url, forged)).status).toBe(401);
    expect((await me(running, agent)).status).toBe(200);
  });

  it('the rate of an agent is not exhausted by replays of the agent’s moves: each gets its first response', async () => {
    const running = await run(settings);
    const { url, clock } = running;
    const agent = await newAgent(running);
    const body = { name: 'Replayed', ...deadlinesFrom(clock.read()) };
    const create = () => prepare('POST', '/chambers', { by: agent, publicUrl: url, now: clock.read(), body });
    const move = create();
    const first = await send(url, move);
    const replays = await Promise.all(Array.from({ length: 20 }, () => send(url, move)));
    expect(replays.map(({ body }) => body)).toEqual(replays.map(() => first.body));
    const flood = await Promise.all(Array.from({ length: 20 }, () => send(url, create())));
    expect(new Set(flood.map(({ status }) => status))).toEqual(new Set([200, 429]));
    expect(await send(url, move)).toMatchObject({ status: 200, body: first.body });
  });
});

describe('the changes of an account', () => {
  it('the changes of an account are limited separately from other requests, whichever endpoint makes them', async () => {
    const running = await run({ ACCOUNT_CHANGES_PER_DID_PER_MINUTE: '1', ACCOUNT_CHANGES_PER_DID_BURST: '2' });
    const { url, clock } = running;
    const [busy, other] = [await newAgent(running), await newAgent(running)];
    const change = (by: Signer, style: string) =>
      prepare('PUT', '/personality', { by, publicUrl: url, now: clock.read(), body: { patch: { style } } });
    const first = change(busy, 'new');
    const responses = [await send(url, first), await send(url, first), await send(url, change(busy, 'newer'))];
    // The registration was signed.
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(responses[2]).toMatchObject(RATE_REFUSAL);
    const body = { ...registrationOf(busy), personality: { style: 'newest' } };
    const registration = prepare('POST', '/register', { by: busy, publicUrl: url, now: clock.read(), body });
    expect(await send(url, registration)).toMatchObject(RATE_REFUSAL);
    expect((await me(running, busy)).status).toBe(200);
    expect((await send(url, change(other, 'new'))).status).toBe(200);
  });
});

describe('the streams of an address', () => {
  it('the streams of an address are rejected beyond the limit, and accepted again once a stream ends', async () => {
    const { running, id } = await runDebating({ STREAMS_PER_ADDRESS_MAX: '2' });
    const path = `/chambers/${id}/stream?after=0`;
    const first = await consume(running, path);
    const second = await RawSocket.open(running.url);
    second.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
    await second.receive(/id: 2\n/);
    expect(await subscribe(running, path)).toMatchObject({ refusal: RATE_REFUSAL });
    await expect(openSource(running, path)).rejects.toThrow('429');
    first.socket.terminate();
    await untilAccepted(() => consume(running, path));
    second.destroy();
    await untilAccepted(() => openSource(running, path));
  });

  it('the streams of an address are not exhausted by failed handshakes', async () => {
    const { running, id } = await runDebating({ STREAMS_PER_ADDRESS_MAX: '2' });
    for (let attempt = 0; attempt < 10; attempt++) {
      await subscribe(running, '/chambers/999/stream');
      await subscribe(running, `/chambers/${id}/stream?after=999`);
      const broken = await RawSocket.open(running.url);
      broken.write(
        `GET /chambers/${id}/stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`,
      );
      await broken.closed;
    }
    const consumers = [
      await consume(running, `/chambers/${id}/stream`),
      await consume(running, `/chambers/${id}/stream`),
    ];
    expect(consumers).toHaveLength(2);
  });
});

describe('unsigned registrations of new keys', () => {
  it('unsigned registrations of new keys are limited by address; a repeated registration does not count', async () => {
    const { url } = await run({ REGISTRATIONS_PER_ADDRESS_PER_MINUTE: '1', REGISTRATIONS_PER_ADDRESS_BURST: '2' });
    const register = async (signer: Signer) => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
      const response = await fetch(`${url}/register`, { ...init, body: JSON.stringify(registrationOf(signer)) });
      return [response.status, response.headers.get('retry-after')];
    };
    const [first, second, third] = [new Signer(), new Signer(), new Signer()];
    expect([await register(first), await register(first), await register(second), await register(first)]).toEqual(
      Array.from({ length: 4 }, () => [200, null]),
    );
    expect(await register(third)).toEqual([429, expect.stringMatching(/^(59|60)$/)]);
  });
});

describe('pipelined requests', () => {
  it('pipelined requests are started one at a time: a stream behind another is not opened', async () => {
    const { running, id } = await runDebating({ STREAMS_PER_ADDRESS_MAX: '3' });
    const path = `/chambers/${id}/stream?after=0`;
    const socket = await RawSocket.open(running.url);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`.repeat(3));
    await socket.receive(/id: 2\n/);
    const others = [await openSource(running, path), await openSource(running, path)];
    expect(others).toHaveLength(2);
    await expect(openSource(running, path)).rejects.toThrow('429');
    socket.destroy();
    await untilAccepted(() => openSource(running, path));
  });

  it('pipelined requests get their responses in order', async () => {
    const { running, id } = await runDebating();
    const socket = await RawSocket.open(running.url);
    const requests = [`/chambers/${id}`, '/nowhere', `/chambers/${id}/events`, '/health'];
    socket.write(requests.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
    const text = await socket.receive(/"ok":true/);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 200', 'HTTP/1.1 200']);
    socket.destroy();
  });
});

describe('pipelined requests beyond the limit', () => {
  it('pipelined requests beyond the limit close the connections that pipeline most; connections with few requests get their responses', async () => {
    const { running, id } = await runDebating({ PIPELINED_REQUESTS_MAX: '20' });
    const stream = `GET /chambers/${id}/stream?after=0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`;
    const health = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n';
    const [greedy, modest] = [await RawSocket.open(running.url), await RawSocket.open(running.url)];
    greedy.write(stream + health.repeat(20));
    await greedy.receive(/id: 2\n/);
    modest.write(`GET /chambers/${id}/events HTTP/1.1\r\nHost: x\r\n\r\n${health.repeat(10)}`);
    await modest.receive(/(HTTP[\s\S]*){11}"ok":true/);
    greedy.destroy();

    const another = await RawSocket.open(running.url);
    another.write(stream + health.repeat(21));
    await another.closed;
    modest.write(health);
    await modest.receive(/(HTTP[\s\S]*){12}"ok":true/);
  });
});

describe('connections', () => {
  it('connections beyond the limit are closed, and open ones stay open', async () => {
    const { url } = await run({ CONNECTIONS_MAX: '2' });
    const open = [await RawSocket.open(url), await RawSocket.open(url)];
    const third = await RawSocket.open(url);
    await third.closed;
    expect(third.received).toBe('');
    open[0]?.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await open[0]?.receive(/"ok":true/)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each([
    ['an incomplete head', 'GET /health HTTP/1.1\r\n', '408'],
    ['an incomplete body', 'POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{', '408'],
  ])('connections with %s are closed in time', async (_title, bytes, status) => {
    const { url } = await run({ HEADERS_TIMEOUT_SECONDS: '1', REQUEST_TIMEOUT_SECONDS: '1' });
    const socket = await RawSocket.open(url);
    socket.write(bytes);
    await socket.closed;
    expect(socket.received).toContain(`HTTP/1.1 ${status} `);
  });

  it('connections are closed if the client sends nothing', async () => {
    const { url } = await run({ HEADERS_TIMEOUT_SECONDS: '1', REQUEST_TIMEOUT_SECONDS: '1' });
    await (await RawSocket.open(url)).closed;
  });

  it('connections are closed if the client does not read a response', async () => {
    const { running, id, debate } = await runDebating({ STALL_SECONDS: '1' });
    for (let move = 0; move < 100; move++) await debate('漢'.repeat(8_000));
    const [stalled, slow] = [await RawSocket.open(running.url), await RawSocket.open(running.url)];
    for (const { socket } of [stalled, slow]) {
      socket.pause();
      socket.write(`GET /chambers/${id}/events HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(8));
    }
    const reading = setInterval(() => slow.socket.read(), 30);
    await vi.waitUntil(() => slow.socket.bytesRead > 0, { timeout: 30_000 });
    await sleep(3_500);
    clearInterval(reading);
    for (const { socket } of [stalled, slow]) socket.resume();
    await stalled.closed;
    expect(slow.socket.closed).toBe(false);
  });

  it('connections are closed when they are idle', async () => {
    const { url } = await run({ KEEP_ALIVE_SECONDS: '1' });
    const socket = await RawSocket.open(url);
    socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
    await socket.receive(/"ok":true/);
    await once(socket.socket, 'end');
  });
});

const FAR = Object.fromEntries(
  ['lobby', 'proposal', 'debate', 'allocateCommit', 'allocateReveal'].map((name) => [
    `${name}Deadline`,
    '2031-01-01T00:00:00.000Z',
  ]),
);

describe('open chambers', () => {
  it('open chambers of one agent beyond the limit are rejected', async () => {
    const { running, by } = await runDebating({ CHAMBERS_OPEN_PER_DID_MAX: '1' });
    const body = { name: 'Second' };
    await expect(call(running, by, ['POST', '/chambers', body])).rejects.toThrow('400');
    await expect(call(running, by, ['POST', '/chambers', { ...body, ...FAR }])).rejects.toThrow('409');
  });

  it('open chambers are counted even while others are being opened', async () => {
    const { running, by } = await runDebating({ CHAMBERS_OPEN_PER_DID_MAX: '2' });
    const open = (name: string) => call(running, by, ['POST', '/chambers', { name, ...FAR }]);
    const outcomes = await Promise.allSettled(['a', 'b', 'c', 'd', 'e', 'f'].map(open));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('open chambers are not counted if their creation is rejected', async () => {
    const { running, by } = await runDebating({ CHAMBERS_OPEN_PER_DID_MAX: '2' });
    const refused = Array.from({ length: 5 }, (_, at) => call(running, by, ['POST', '/chambers', { name: `${at}` }]));
    const outcomes = Promise.allSettled(refused);
    expect(await call(running, by, ['POST', '/chambers', { name: 'Good', ...FAR }])).toMatchObject({ phase: 'LOBBY' });
    expect((await outcomes).map(({ status }) => status)).toEqual(refused.map(() => 'rejected'));
  });
});

async function untilAccepted(open: () => Promise<unknown>): Promise<void> {
  // The service notices the end a moment after the test.
  await until(() =>
    open().then(
      () => true,
      () => false,
    ),
  );
}

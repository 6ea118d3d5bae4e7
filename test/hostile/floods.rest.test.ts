// Clients that send too much, too slowly or endlessly: each gets a response or is disconnected, and all other clients are served.
import { afterEach, describe, expect, it } from 'vitest';
import { RawSocket } from '../kit/raw-socket.ts';
import { type Running, run } from '../kit/service.ts';
import { get } from '../kit/wire.ts';

const HEAD = 'POST /register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
const TEN_MEGABYTES = 10_000_000;

let running: Running;

async function start(settings: Readonly<Record<string, string>> = {}): Promise<string> {
  running = await run({ HEADERS_TIMEOUT_SECONDS: '1', REQUEST_TIMEOUT_SECONDS: '2', ...settings });
  return running.url;
}

afterEach(async () => {
  expect((await get(running.url, '/health')).body.ok).toBe(true);
});

describe('a body of ten megabytes', () => {
  it('a body of ten megabytes is rejected with 413, which the client receives while it is still sending', async () => {
    const url = await start();
    const headers = { 'content-type': 'application/json' };
    for (let attempt = 0; attempt < 10; attempt++) {
      const response = await fetch(`${url}/register`, { method: 'POST', headers, body: 'x'.repeat(TEN_MEGABYTES) });
      expect(response.status).toBe(413);
      expect(await response.json()).toMatchObject({ error: 'FORUM_ERR_TOO_LARGE' });
    }
  });

  it('a body of ten megabytes is also rejected in chunks, while it arrives', async () => {
    const url = await start();
    const body = new ReadableStream({
      start: (controller) => {
        for (let sent = 0; sent < TEN_MEGABYTES; sent += 50_000) controller.enqueue(Buffer.alloc(50_000, 'x'));
        controller.close();
      },
    });
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body, duplex: 'half' };
    const response = await fetch(`${url}/register`, init as RequestInit);
    expect(response.status).toBe(413);
  });
});

describe('an endless body', () => {
  it('an endless body is cut off soon after its limit', async () => {
    const url = await start();
    const socket = await RawSocket.open(url);
    socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    const written = await socket.flood(() => chunk);
    expect(written).toBeLessThan(100 * TEN_MEGABYTES);
  });

  it('an endless body is cut off in time when it arrives a byte at a time', async () => {
    const url = await start();
    const socket = await RawSocket.open(url);
    socket.write(`${HEAD}Content-Length: 60000\r\n\r\n`);
    const dripping = setInterval(() => socket.write('{'), 20);
    await socket.closed;
    clearInterval(dripping);
    expect(socket.received).toMatch(/^HTTP\/1\.1 408 /);
  });
});

describe('an endless head', () => {
  it('an endless head is cut off at its limit', async () => {
    const url = await start();
    const socket = await RawSocket.open(url);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n');
    const written = await socket.flood((header) => `X-${header}: ${'x'.repeat(1_000)}\r\n`);
    expect(written).toBeLessThan(TEN_MEGABYTES);
  });

  it('an endless head is cut off in time when it arrives a byte at a time', async () => {
    const url = await start();
    const socket = await RawSocket.open(url);
    socket.write('GET / HTTP/1.1\r\nX: ');
    const dripping = setInterval(() => socket.write('x'), 20);
    await socket.closed;
    clearInterval(dripping);
    expect(socket.received).toMatch(/^HTTP\/1\.1 408 /);
  });
});

describe('a preflight', () => {
  it('a preflight with huge headers is rejected like any other request', async () => {
    const url = await start();
    const socket = await RawSocket.open(url);
    socket.write(
      `OPTIONS /chambers HTTP/1.1\r\nHost: x\r\nAccess-Control-Request-Headers: ${'x,'.repeat(10_000)}\r\n\r\n`,
    );
    await socket.closed;
    expect(socket.received).toMatch(/^HTTP\/1\.1 431 /);
  });

  it('a preflight with many headers within the limit gets a response', async () => {
    const url = await start();
    const headers = { 'access-control-request-headers': 'x,'.repeat(5_000), 'access-control-request-method': 'POST' };
    expect((await fetch(`${url}/chambers`, { method: 'OPTIONS', headers })).status).toBe(204);
  });
});

describe('requests in one write', () => {
  it('requests in one write get one response each, in order', async () => {
    const url = await start();
    const socket = await RawSocket.open(url);
    const paths = Array.from({ length: 200 }, (_, index) => `/nowhere-${index}`);
    socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
    await socket.receive(/nowhere-199 not found"/);
    expect([...socket.received.matchAll(/(\/nowhere-\d+) not found"/g)].map(([, path]) => path)).toEqual(paths);
  });
});

describe('many silent connections', () => {
  it('many silent connections are closed in time, and do not lock out other clients', async () => {
    const url = await start();
    const sockets = await Promise.all(Array.from({ length: 500 }, () => RawSocket.open(url)));
    expect((await get(url, '/health')).status).toBe(200);
    await Promise.all(sockets.map(({ closed }) => closed));
  });
});

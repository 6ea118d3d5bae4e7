// Requests as bytes on a socket: what two readers could read differently is refused, and every error has the usual form.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { RawSocket } from '../kit/raw-socket.ts';
import { call, newAgent, run, sendRaw } from '../kit/service.ts';

function parse(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body };
}

const END = 'Connection: close\r\n\r\n';
const HOST = 'Host: forum.test\r\n';

describe('an ambiguous request', () => {
  it.each([
    ['two Host headers', `GET / HTTP/1.1\r\n${HOST}Host: evil.test\r\n${END}`],
    ['two Host headers that agree', `GET / HTTP/1.1\r\n${HOST}${HOST}${END}`],
    [
      'two types of one body',
      `POST /register HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n${END}{}`,
    ],
    ['a fragment in the target', `GET /chambers#top HTTP/1.1\r\n${HOST}${END}`],
    ['an absolute-form target', `GET http://forum.test/ HTTP/1.1\r\n${HOST}${END}`],
    ['an absolute-form target in capitals', `GET HTTP://forum.test/ HTTP/1.1\r\n${HOST}${END}`],
    ['the asterisk form', `OPTIONS * HTTP/1.1\r\n${HOST}${END}`],
    ['no Host header', `GET / HTTP/1.1\r\n${END}`],
    ['no Host header in HTTP/1.0', `GET / HTTP/1.0\r\n${END}`],
    ['an empty Host header', `GET / HTTP/1.1\r\nHost: \r\n${END}`],
    ['a path in the Host header', `GET / HTTP/1.1\r\nHost: forum.test/x\r\n${END}`],
    ['a user in the Host header', `GET / HTTP/1.1\r\nHost: a@forum.test\r\n${END}`],
    ['a backslash in the target', `GET /chambers\\1 HTTP/1.1\r\n${HOST}${END}`],
    ['bytes outside ASCII in the target', `GET /ideas/\xe4 HTTP/1.1\r\n${HOST}${END}`],
    [
      'two Host headers in a handshake',
      `GET /chambers/1/stream HTTP/1.1\r\n${HOST}${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
    ['a second Host header after 2,100 others', `GET / HTTP/1.1\r\n${HOST}${'a:\r\n'.repeat(2_100)}${HOST}${END}`],
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['an unknown method', `BREW / HTTP/1.1\r\n${HOST}${END}`],
    ['two lengths', `POST /register HTTP/1.1\r\n${HOST}Content-Length: 2\r\nContent-Length: 3\r\n${END}{}`],
    [
      'a length and chunks',
      `POST /register HTTP/1.1\r\n${HOST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n${END}{}`,
    ],
  ])('is refused: %s', async (_what, bytes) => {
    const { url } = await run();
    const { status, head, body } = parse(await sendRaw(url, bytes));
    expect(status).toBe(400);
    expect(head).toContain('access-control-allow-origin: *');
    expect(JSON.parse(body)).toEqual({ error: 'FORUM_ERR_VALIDATION', detail: expect.any(String) });
  });

  it.each([
    [
      'a head that is too large',
      `GET / HTTP/1.1\r\n${HOST}X: ${'x'.repeat(20_000)}\r\n${END}`,
      431,
      'FORUM_ERR_TOO_LARGE',
    ],
    ['an unknown expectation', `GET / HTTP/1.1\r\n${HOST}Expect: miracles\r\n${END}`, 417, 'FORUM_ERR_VALIDATION'],
    ['a proxy request', `CONNECT forum.test:443 HTTP/1.1\r\n${HOST}${END}`, 405, 'FORUM_ERR_METHOD'],
    ['a method that no path takes', `TRACE / HTTP/1.1\r\n${HOST}${END}`, 405, 'FORUM_ERR_METHOD'],
    [
      'a body that says it is too long',
      `POST /register HTTP/1.1\r\n${HOST}Content-Length: 70000\r\n${END}`,
      413,
      'FORUM_ERR_TOO_LARGE',
    ],
    [
      'a body that turns out too long',
      `POST /register HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n${END}11170\r\n${'x'.repeat(0x11170)}\r\n0\r\n\r\n`,
      413,
      'FORUM_ERR_TOO_LARGE',
    ],
  ])('is refused: %s', async (_what, bytes, expected, error) => {
    const { url } = await run();
    const { status, head, body } = parse(await sendRaw(url, bytes));
    expect([status, JSON.parse(body).error]).toEqual([expected, error]);
    expect(head).toContain('access-control-allow-origin: *');
    expect(head.includes('\r\nallow: ')).toBe(status === 405);
  });
});

describe('a request that asks for a protocol it is not offered', () => {
  const H2C = 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAA\r\n\r\n';
  const WEBSOCKET =
    'Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';

  it.each([
    ['GET /health', H2C, 200, /"ok":true/],
    ['GET /health', WEBSOCKET, 200, /"ok":true/],
    ['HEAD /health', WEBSOCKET, 200, /^$/],
    ['OPTIONS /chambers', WEBSOCKET, 204, /^$/],
    ['DELETE /chambers', WEBSOCKET, 405, /FORUM_ERR_METHOD/],
    ['POST /chambers/1/stream', WEBSOCKET, 405, /FORUM_ERR_METHOD/],
    ['GET /nowhere', H2C, 404, /FORUM_ERR_NOT_FOUND/],
  ])('is answered as it would be without: %s', async (line, rest, expected, text) => {
    const { url } = await run();
    const { status, body } = parse(await sendRaw(url, `${line} HTTP/1.1\r\n${HOST}${rest}`));
    expect(status).toBe(expected);
    expect(body).toMatch(text);
  });

  it.each([['in one packet'], ['in two']])('is carried out with its body, %s', async (packets) => {
    const running = await run();
    const by = await newAgent(running);
    const body = '{"patch":{"style":"brief"}}';
    const { host } = new URL(running.url);
    const headers = by.sign({ method: 'PUT', url: `${running.url}/personality`, body, created: running.clock.seconds });
    const lines = Object.entries({
      ...headers,
      'Content-Type': 'application/json',
      'Content-Length': `${body.length}`,
    });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const socket = await RawSocket.open(running.url);
    const request = `PUT /personality HTTP/1.1\r\nHost: ${host}\r\n${head}${H2C}`;
    if (packets === 'in two') {
      socket.write(request);
      await sleep(50);
      socket.write(body);
    } else {
      socket.write(request + body);
    }
    expect(await socket.receive(/"style":"brief"/)).toMatch(/^HTTP\/1\.1 200 /);
    await socket.closed;
  });
});

describe('the target of a signature', () => {
  it.each(['/me', '/me?b=2&a=1', '/me?q=%7e%C3%a4+'])('is %s as sent', async (path) => {
    const running = await run();
    const by = await newAgent(running);
    expect(await call(running, by, ['GET', path])).toMatchObject({ did: by.did });
  });

  it('is not what a normaliser would make of it', async () => {
    const running = await run();
    const by = await newAgent(running);
    const { host } = new URL(running.url);
    const send = async (signedPath: string, sentPath: string) => {
      const headers = by.sign({ method: 'GET', url: running.url + signedPath, created: running.clock.seconds });
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      return parse(await sendRaw(running.url, `GET ${sentPath} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}${END}`))
        .status;
    };
    expect(await send('/me?', '/me?')).toBe(200);
    expect(await send('/me', '/me?')).toBe(401);
    expect(await send('/me?a=%7e', '/me?a=%7e')).toBe(200);
    expect(await send('/me?a=~', '/me?a=%7e')).toBe(401);
    expect(await send('/me', '/x/../me')).not.toBe(200);
  });

  it('takes the Host header where no PUBLIC_URL is set', async () => {
    const running = await run();
    const by = await newAgent(running);
    const headers = by.sign({ method: 'GET', url: 'http://elsewhere.test:99/me', created: running.clock.seconds });
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const answer = await sendRaw(running.url, `GET /me HTTP/1.1\r\nHost: elsewhere.test:99\r\n${lines.join('')}${END}`);
    expect(parse(answer).status).toBe(200);
  });

  it('is refused where a header comes twice', async () => {
    const running = await run();
    const by = await newAgent(running);
    const headers = by.sign({ method: 'GET', url: `${running.url}/me`, created: running.clock.seconds });
    for (const twice of Object.keys(headers)) {
      const lines = Object.entries(headers).map(([name, value]) =>
        `${name}: ${value}\r\n`.repeat(name === twice ? 2 : 1),
      );
      const bytes = `GET /me HTTP/1.1\r\nHost: ${new URL(running.url).host}\r\n${lines.join('')}${END}`;
      expect([twice, parse(await sendRaw(running.url, bytes)).status]).toEqual([twice, 401]);
    }
  });
});

describe('a client that breaks off before its refusal', () => {
  it.each([
    ['of a proxy request', `CONNECT forum.test:443 HTTP/1.1\r\n${HOST}\r\n`],
    ['of a handshake', `GET /chambers/9/stream HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`],
    ['of bytes that are no HTTP', 'hello\r\n\r\n'],
  ])('ends its own connection alone: %s', async (_what, bytes) => {
    const { url } = await run();
    for (let attempt = 0; attempt < 50; attempt++) {
      const client = await RawSocket.open(url);
      await new Promise((written) => client.socket.write(bytes, written));
      client.socket.resetAndDestroy();
    }
    expect((await fetch(url)).status).toBe(200);
  });
});

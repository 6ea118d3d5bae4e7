// Raw bytes on a socket: ambiguous requests are rejected, and every error has the usual form.
import { channel } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { RawSocket } from '../kit/raw-socket.ts';
import { call, newAgent, type Running, run, runDebating, sendRaw, sharedService } from '../kit/service.ts';
import type { Signer } from '../kit/signer.ts';
import { onSqliteOnly } from '../kit/store.ts';

onSqliteOnly('it uses no store');

function parse(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body };
}

const END = 'Connection: close\r\n\r\n';
const HOST = 'Host: forum.test\r\n';
const HANDSHAKE = 'GET /chambers/1/stream HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';

describe('an ambiguous request', () => {
  const running = sharedService();

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
    ...[
      '256.256.256.256',
      '1.2.3.4.5',
      'xn--',
      '0xffffffffff',
      'a..b',
      '.forum.test',
      '[::1',
      'forum.test:65536',
      'x'.repeat(300),
    ].map((host) => [`the Host header ${host.slice(0, 20)}`, `GET / HTTP/1.1\r\nHost: ${host}\r\n${END}`]),
    ['an invalid Host header of a handshake', `${HANDSHAKE}Host: 1.2.3.4.5\r\nSec-WebSocket-Version: 13\r\n\r\n`],
    ...['HTTP/2.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/3.0'].map((version) => [
      `a request line of ${version}`,
      `GET / ${version}\r\n${HOST}${END}`,
    ]),
    ['a request line without a version', `GET /\r\n${HOST}${END}`],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['an unknown method', `BREW / HTTP/1.1\r\n${HOST}${END}`],
    ['two lengths', `POST /register HTTP/1.1\r\n${HOST}Content-Length: 2\r\nContent-Length: 3\r\n${END}{}`],
    [
      'a length and chunks',
      `POST /register HTTP/1.1\r\n${HOST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n${END}{}`,
    ],
  ])('an ambiguous request is rejected: %s', async (_what, bytes) => {
    const { status, head, body } = parse(await sendRaw(running.url, bytes));
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
    [
      'an Expect header with more than 100-continue',
      `GET / HTTP/1.1\r\n${HOST}Expect: y 100-continue\r\n${END}`,
      417,
      'FORUM_ERR_VALIDATION',
    ],
    ['a proxy request', `CONNECT forum.test:443 HTTP/1.1\r\n${HOST}${END}`, 405, 'FORUM_ERR_METHOD'],
    ['a method that no path allows', `TRACE / HTTP/1.1\r\n${HOST}${END}`, 405, 'FORUM_ERR_METHOD'],
    [
      'a body that is declared too long',
      `POST /register HTTP/1.1\r\n${HOST}Content-Length: 70000\r\n${END}`,
      413,
      'FORUM_ERR_TOO_LARGE',
    ],
    [
      'a body that exceeds the limit while it arrives',
      `POST /register HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n${END}11170\r\n${'x'.repeat(0x11170)}\r\n0\r\n\r\n`,
      413,
      'FORUM_ERR_TOO_LARGE',
    ],
  ])('an ambiguous request is rejected: %s', async (_what, bytes, expected, error) => {
    const { status, head, body } = parse(await sendRaw(running.url, bytes));
    expect([status, JSON.parse(body).error]).toEqual([expected, error]);
    expect(head).toContain('access-control-allow-origin: *');
    expect(head.includes('\r\nallow: ')).toBe(status === 405);
  });
});

describe('a version of HTTP other than 1.0 and 1.1', () => {
  const running = sharedService();

  it.each(['HTTP/2.0', 'HTTP/1.2'])(
    'a version of HTTP other than 1.0 and 1.1 is named in the error: %s',
    async (version) => {
      const { body } = parse(await sendRaw(running.url, `GET / ${version}\r\n${HOST}${END}`));
      expect(JSON.parse(body).detail).toBe('only HTTP/1.1 and HTTP/1.0 are supported');
    },
  );
});

describe('a Host header', () => {
  const running = sharedService();

  it.each(['127.0.0.1:80', 'localhost', 'forum.test.', 'my_host', '[::1]:8080', 'xn--bcher-kva.test', 'a-b.c1'])(
    'a Host header may repeatedly be %s',
    async (host) => {
      for (let request = 0; request < 2; request++) {
        expect(parse(await sendRaw(running.url, `GET / HTTP/1.1\r\nHost: ${host}\r\n${END}`)).status).toBe(200);
      }
    },
  );

  it('a Host header is still accepted after a hundred other values, and an invalid one is still rejected', async () => {
    const { url } = await run();
    const socket = await RawSocket.open(url);
    for (let host = 0; host < 150; host++) socket.write(`GET / HTTP/1.1\r\nHost: h${host}.test\r\n\r\n`);
    socket.write(`GET / HTTP/1.1\r\nHost: h1.test\r\n\r\nGET / HTTP/1.1\r\nHost: 1.2.3.4.5\r\n\r\n`);
    await socket.closed;
    expect(socket.received.match(/HTTP\/1\.1 200/g)).toHaveLength(151);
    expect(socket.received).toContain('HTTP/1.1 400');
  });
});

describe('the head of a request', () => {
  const pad = (bytes: number, line: string) => {
    const start = `GET / HTTP/1.1\r\n${HOST}`;
    const lines = line.repeat(Math.floor((bytes - start.length - END.length - 10) / line.length));
    const rest = bytes - start.length - lines.length - END.length - 'Pad: \r\n'.length;
    return `${start}${lines}Pad: ${'x'.repeat(rest)}\r\n${END}`;
  };

  it.each([
    ['many short lines', 'a: b\r\n'],
    ['long names', `${'n'.repeat(50)}: b\r\n`],
    ['long values', `a: ${'v'.repeat(400)}\r\n`],
  ])('the size of a request head includes its separators as sent: %s', async (_what, line) => {
    const { url } = await run({ HEADER_BYTES_MAX: '4096' });
    const [fits, over] = [pad(4_096, line), pad(4_097, line)];
    expect([fits.length, over.length]).toEqual([4_096, 4_097]);
    expect(parse(await sendRaw(url, fits)).status).toBe(200);
    const { status, body } = parse(await sendRaw(url, over));
    expect([status, JSON.parse(body)]).toEqual([
      431,
      { error: 'FORUM_ERR_TOO_LARGE', detail: 'the request head is too large: at most 4096 bytes are accepted' },
    ]);
  });

  it('the head of a handshake has the same limit', async () => {
    const { url } = await run({ HEADER_BYTES_MAX: '4096' });
    const bytes = `${HANDSHAKE}${HOST}Sec-WebSocket-Version: 13\r\n${'a: b\r\n'.repeat(700)}\r\n`;
    expect(parse(await sendRaw(url, bytes)).status).toBe(431);
  });
});

describe('a request for an unsupported protocol', () => {
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
  ])('a request for an unsupported protocol is served without the upgrade: %s', async (line, rest, expected, text) => {
    const { url } = await run();
    const { status, body } = parse(await sendRaw(url, `${line} HTTP/1.1\r\n${HOST}${rest}`));
    expect(status).toBe(expected);
    expect(body).toMatch(text);
  });

  it.each([['in one packet'], ['in two']])(
    'a request for an unsupported protocol is served with its body, %s',
    async (packets) => {
      const running = await run();
      const by = await newAgent(running);
      const body = '{"patch":{"style":"brief"}}';
      const { host } = new URL(running.url);
      const headers = by.sign({
        method: 'PUT',
        url: `${running.url}/personality`,
        body,
        created: running.clock.seconds,
      });
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
    },
  );
});

describe('an upgrade behind an unfinished response', () => {
  const UPGRADE = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';

  async function signedPut(running: Running, by: Signer, style: string) {
    const body = JSON.stringify({ patch: { style } });
    const { host } = new URL(running.url);
    const signed = by.sign({ method: 'PUT', url: `${running.url}/personality`, body, created: running.clock.seconds });
    const lines = Object.entries({ ...signed, 'Content-Type': 'application/json', 'Content-Length': `${body.length}` });
    const fields = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    return { head: `PUT /personality HTTP/1.1\r\nHost: ${host}\r\n${fields}`, body };
  }

  it('an upgrade behind an unfinished response is served in its turn, even if its body arrives later', async () => {
    const running = await run();
    const by = await newAgent(running);
    const [first, second, third] = await Promise.all(
      ['one', 'two', 'three'].map((style) => signedPut(running, by, style)),
    );
    const socket = await RawSocket.open(running.url);
    socket.write(`${first?.head}\r\n${first?.body}${second?.head}\r\n${second?.body}${third?.head}${UPGRADE}\r\n`);
    await socket.receive(/"style":"two"/);
    socket.write(`${third?.body}GET /health HTTP/1.1\r\n${HOST}${END}`);
    await socket.closed;
    const bodies = socket.received.split('\r\n\r\n').filter((part) => part.startsWith('{'));
    expect(bodies.map((part) => /one|two|three|"ok"/.exec(part)?.[0])).toEqual(['one', 'two', 'three', '"ok"']);
  });

  it('an upgrade behind an unfinished response waits until a slow client has read large responses', async () => {
    const { running, id, debate } = await runDebating();
    for (let count = 0; count < 100; count++) await debate('x'.repeat(8_000));
    const socket = await RawSocket.open(running.url);
    socket.socket.pause();
    // 13 MB, more than the system buffers.
    const pages = `GET /chambers/${id}/events HTTP/1.1\r\n${HOST}\r\n`.repeat(8);
    socket.write(`${pages}GET /health HTTP/1.1\r\n${HOST}Connection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n`);
    await sleep(200);
    socket.socket.resume();
    await socket.closed;
    expect(socket.received.match(/HTTP\/1\.1 200/g)).toHaveLength(9);
    expect(socket.received).toMatch(/\r\n0\r\n\r\nHTTP[^{]*\{"ok":true,[^{]*\}$/);
  });

  it('an upgrade behind an unfinished response opens a stream after the earlier responses', async () => {
    const { running, id } = await runDebating();
    const socket = await RawSocket.open(running.url);
    const fields = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';
    const handshake = `${HANDSHAKE.replace('/1/', `/${id}/`).replace('stream', 'stream?after=0')}${HOST}${fields}`;
    socket.write(`GET /health HTTP/1.1\r\n${HOST}\r\n`.repeat(2) + handshake);
    const received = await socket.receive(/chamber\.created.*chamber\.joined/);
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 101']);
  });

  it.each([3, 20])(
    'an upgrade behind an unfinished response opens a WebSocket that the service reads, behind %i requests',
    async (requests) => {
      const { running, id } = await runDebating();
      const socket = await RawSocket.open(running.url);
      const fields = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';
      const handshake = `${HANDSHAKE.replace('/1/', `/${id}/`)}${HOST}${fields}`;
      socket.write(`GET /health HTTP/1.1\r\n${HOST}\r\n`.repeat(requests) + handshake);
      await socket.receive(/HTTP\/1\.1 101 .*\r\n\r\n/s);
      socket.write(Buffer.from([0x89, 0x80, 0, 0, 0, 0]));
      await socket.receive('\x8a\x00');
    },
  );

  it('an upgrade behind an unfinished response does not damage the earlier responses if it is rejected', async () => {
    const { url } = await run();
    const answer = await sendRaw(url, `GET /health HTTP/1.1\r\n${HOST}\r\n${HANDSHAKE}${HOST}\r\n`);
    expect(answer.match(/HTTP\/1\.1 \d+|"ok":true|FORUM_ERR_VALIDATION/g)).toEqual([
      'HTTP/1.1 200',
      '"ok":true',
      'HTTP/1.1 400',
      'FORUM_ERR_VALIDATION',
    ]);
  });
});

describe('bytes that are not HTTP', () => {
  it('bytes that are not HTTP on the connection of a stream end the stream without an HTTP response', async () => {
    const { running, id } = await runDebating();
    const socket = await RawSocket.open(running.url);
    socket.write(`GET /chambers/${id}/stream?after=0 HTTP/1.1\r\n${HOST}Accept: text/event-stream\r\n\r\n`);
    await socket.receive(/id: 2\n/);
    socket.write('no HTTP\r\n\r\n');
    await socket.closed;
    expect(socket.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
  });

  it('bytes that are not HTTP after a request do not replace its response', async () => {
    const running = await run();
    const { forum } = running.service;
    const { findChamber } = forum;
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    Object.assign(forum, {
      findChamber: async (chamberId: string) => {
        resolve();
        await sleep(50);
        return findChamber.call(forum, chamberId);
      },
    });
    const socket = await RawSocket.open(running.url);
    socket.write(`GET /chambers/1 HTTP/1.1\r\n${HOST}\r\n`);
    await asked;
    socket.write('no HTTP\r\n\r\n');
    await socket.closed;
    expect(socket.received).not.toMatch(/400/);
  });
});

it('upgrade requests on one connection leave no listeners behind', async () => {
  const running = await run();
  const sockets = new Set<Socket>();
  const onStart = (message: unknown) => sockets.add((message as { readonly socket: Socket }).socket);
  channel('http.server.request.start').subscribe(onStart);
  const socket = await RawSocket.open(running.url);
  const counts: number[] = [];
  for (let request = 1; request <= 12; request++) {
    socket.write(`GET /health HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`);
    await socket.receive(new RegExp(`("ok":true[^]*){${request}}`));
    const [served] = sockets;
    counts.push(served?.eventNames().reduce((sum, name) => sum + served.listenerCount(name), 0) ?? 0);
  }
  channel('http.server.request.start').unsubscribe(onStart);
  expect(sockets.size).toBe(1);
  expect(Math.max(...counts)).toBe(counts[0]);
});

it('a page for a target with dot segments has working links', async () => {
  const { url } = await run();
  const { body } = parse(await sendRaw(url, `GET /health/.. HTTP/1.1\r\n${HOST}${END}`));
  expect(JSON.parse(body).docs).toBe('http://forum.test/docs');
});

describe('the target of a signature', () => {
  it.each(['/me', '/me?b=2&a=1', '/me?q=%7e%C3%a4+'])('the target of a signature is %s as sent', async (path) => {
    const running = await run();
    const by = await newAgent(running);
    expect(await call(running, by, ['GET', path])).toMatchObject({ did: by.did });
  });

  it('the target of a signature is not normalised', async () => {
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

  it('the target of a signature uses the Host header without PUBLIC_URL', async () => {
    const running = await run();
    const by = await newAgent(running);
    const headers = by.sign({ method: 'GET', url: 'http://elsewhere.test:99/me', created: running.clock.seconds });
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const answer = await sendRaw(running.url, `GET /me HTTP/1.1\r\nHost: elsewhere.test:99\r\n${lines.join('')}${END}`);
    expect(parse(answer).status).toBe(200);
  });

  it('the target of a signature is rejected if a signature header is repeated', async () => {
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

describe('a client that disconnects before it gets its error', () => {
  it.each([
    ['of a proxy request', `CONNECT forum.test:443 HTTP/1.1\r\n${HOST}\r\n`],
    ['of a handshake', `GET /chambers/9/stream HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`],
    ['of bytes that are not HTTP', 'hello\r\n\r\n'],
  ])('a client that disconnects before it gets its error affects only its own connection: %s', async (_what, bytes) => {
    const { url } = await run();
    for (let attempt = 0; attempt < 50; attempt++) {
      const client = await RawSocket.open(url);
      await new Promise((written) => client.socket.write(bytes, written));
      client.socket.resetAndDestroy();
    }
    expect((await fetch(url)).status).toBe(200);
  });
});

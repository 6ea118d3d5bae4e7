// `chambers doctor URL` through a proxy that terminates TLS, and the service's warning about an untrusted proxy.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examineService } from '../../src/doctor/running-service.ts';
import { run as runCli } from '../cli/run.ts';
import { TestClock } from '../kit/clock.ts';
import { requireInstalled } from '../kit/programs.ts';
import { listen } from '../kit/serve.ts';
import { run } from '../kit/service.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';

interface ProxyOptions {
  readonly days: number;
  /** Returns the headers to forward. */
  readonly forward: (headers: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;
  readonly isUpgraded?: boolean;
}

async function openProxy(to: string, { days, forward, isUpgraded = true }: ProxyOptions): Promise<string> {
  const folder = temporaryFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const words = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days ${days} -subj /CN=localhost`;
  const names = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert];
  execFileSync('openssl', [...words.split(' '), ...names], { stdio: 'pipe' });
  const { hostname, port } = new URL(to);
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (incoming, outgoing) => {
    const headers = forward(incoming.headers) as Record<string, string>;
    const options = { hostname, port, path: incoming.url, method: incoming.method, headers };
    incoming.pipe(
      request(options, (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      }),
    );
  });
  server.on('upgrade', (incoming, socket) => {
    if (!isUpgraded) {
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
      return;
    }
    const upstream = connect(Number(port), hostname, () => {
      const lines = Object.entries(incoming.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      upstream.write(`GET ${incoming.url} HTTP/1.1\r\n${lines.join('')}\r\n`);
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [upstream, socket]) end.on('error', () => {});
  });
  atEnd(() => void server.close().closeAllConnections());
  return (await listen(server)).replace('http://127.0.0.1', 'https://localhost');
}

const replacing = (headers: object) => ({ ...headers, forwarded: undefined, 'x-forwarded-for': '198.51.100.7' });
const withoutUndefined = (headers: object) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));

async function opened(settings: Readonly<Record<string, string>> = {}) {
  const lines: string[] = [];
  const clock = new TestClock();
  clock.set(Date.now());
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  return { ...(await run({ DATABASE_PATH: ':memory:', ...settings }, clock, logger)), lines };
}

async function asked(url: string) {
  const found = await examineService(url, {});
  return found.map(({ level, variable, detail }) => [level, variable, detail] as const);
}

describe('doctor URL', () => {
  it('doctor URL checks no settings of the local machine', async () => {
    const { url } = await opened();
    const wrong = { NODE_ENV: 'production', DATABASE_PATH: '/nowhere/chambers.db', PORT: 'http' };
    const { exitCode, out } = await runCli(['doctor', url, '--json'], wrong);
    const { findings } = JSON.parse(out) as { readonly findings: readonly { readonly subject: string }[] };
    expect([exitCode, ...new Set(findings.map(({ subject }) => subject))]).toEqual([0, 'service', 'clock']);
  });

  // The certificates are self-signed.
  beforeAll(() => {
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  });
  afterAll(() => {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  });

  it('doctor URL accepts a proxy that replaces addresses and passes WebSockets', async ({ skip }) => {
    requireInstalled(skip, 'openssl');
    const { url } = await opened({ TRUSTED_PROXIES: '127.0.0.1' });
    const found = await asked(
      await openProxy(url, { days: 90, forward: (headers) => withoutUndefined(replacing(headers)) }),
    );
    expect(found.filter(([level]) => level !== 'ok')).toEqual([]);
    expect(found).toContainEqual(['ok', null, "the proxy forwards this machine's address, 198.51.100.7"]);
    expect(found).toContainEqual(['ok', null, expect.stringMatching(/the certificate is valid for (89|90) days/)]);
  });

  it('doctor URL finds an expiring certificate, failing WebSockets, and clients that can forge their address', async ({
    skip,
  }) => {
    requireInstalled(skip, 'openssl');
    const { url } = await opened({ TRUSTED_PROXIES: '127.0.0.1' });
    const forward = (headers: object) => ({ 'x-forwarded-for': '198.51.100.7', ...headers });
    const found = await asked(await openProxy(url, { days: 3, forward, isUpgraded: false }));
    expect(found.filter(([level]) => level !== 'ok')).toEqual([
      ['warning', null, expect.stringMatching(/valid for [23] days/)],
      ['problem', null, expect.stringContaining('WebSockets fail')],
      ['problem', null, expect.stringContaining('clients can forge their address')],
    ]);
  });

  it('doctor URL finds an untrusted proxy, which the service logs once', async ({ skip }) => {
    requireInstalled(skip, 'openssl');
    const { url, lines } = await opened();
    const proxy = await openProxy(url, { days: 90, forward: (headers) => withoutUndefined(replacing(headers)) });
    const lacks = ['problem', 'TRUSTED_PROXIES', 'all clients are seen as 127.0.0.1: the proxy is not listed'];
    expect((await asked(proxy)).filter(([level]) => level !== 'ok')).toEqual([lacks]);
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([expect.stringContaining('TRUSTED_PROXIES lacks')]);
  });

  it('doctor URL finds a proxy that forwards no client address', async ({ skip }) => {
    requireInstalled(skip, 'openssl');
    const { url } = await opened({ TRUSTED_PROXIES: '127.0.0.1' });
    const proxy = await openProxy(url, { days: 90, forward: (headers) => headers as Record<string, unknown> });
    expect((await asked(proxy)).filter(([level]) => level !== 'ok')).toEqual([
      ['problem', null, 'the proxy 127.0.0.1 forwards no client address'],
    ]);
  });

  it('doctor URL warns on the proxy’s machine that it cannot tell how clients are counted', async ({ skip }) => {
    requireInstalled(skip, 'openssl');
    const { url } = await opened({ TRUSTED_PROXIES: '127.0.0.1' });
    const forward = (headers: object) => ({ ...withoutUndefined(replacing(headers)), 'x-forwarded-for': '127.0.0.1' });
    const found = await asked(await openProxy(url, { days: 90, forward }));
    expect(found.filter(([level]) => level !== 'ok')).toEqual([
      ['warning', null, expect.stringContaining('forwards no address outside TRUSTED_PROXIES')],
    ]);
  });
});

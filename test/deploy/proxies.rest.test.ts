// Runs the proxy recipes of deploy/ with the real proxies: signatures, streams, sizes and limits must work behind each of them.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request as plainRequest } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { type RequestOptions, request as secureRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { freePort } from '../../src/demo/free-port.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { Consumer } from '../kit/consumers.ts';
import { requireInstalled } from '../kit/programs.ts';
import { type Running, run } from '../kit/service.ts';
import { startProcess } from '../kit/service-process.ts';
import { Signer } from '../kit/signer.ts';
import { atEnd } from '../kit/temporary.ts';
import { registrationOf } from '../kit/test-service.ts';
import { PROXIES, type ProxyName, startProxy } from './recipes.ts';

/** Allows for a loaded machine, on which a proxy needs seconds to start. */
const SLOW = { timeout: 180_000 };
const MAX_BODY_BYTES = 65_536;

interface Proxied {
  readonly running: Running;
  /** The URL for clients: https://localhost and the port. */
  readonly publicUrl: string;
  readonly httpPort: number;
  readonly authority: string;
}

interface Call {
  readonly by?: Signer;
  readonly body?: string;
  readonly headers?: IncomingHttpHeaders;
  /** The client's real address. */
  readonly from?: string;
}

describe.each(PROXIES)('behind %s', SLOW, (name) => {
  beforeEach(({ skip }) => {
    requireInstalled(skip, name, 'openssl');
  });

  it(`behind ${name}, an agent registers and moves, and every stream gets the moves immediately`, async () => {
    const proxied = await start(name);
    const { by, path } = await newChamber(proxied);
    const socket = openSocket(proxied, `${path}/stream?after=0`);
    const events = await openEvents(proxied, `${path}/stream?after=0`);
    await socket.until(1);
    await events(1);
    await must(proxied, 'POST', `${path}/join`, { by });
    await socket.until(2);
    const sent = await events(2);
    const page = await must(proxied, 'GET', `${path}/events`);
    expect(page.trimEnd().split('\n')).toEqual(socket.lines);
    expect(sent).toEqual(socket.lines);
    expect(socket.eventIds).toEqual([1, 2]);
  });

  it(`behind ${name}, one of several nodes gets all requests to a chamber until it goes away`, async () => {
    const nodes = await Promise.all(['0', '1', '2'].map(openNode));
    const [service = 0, ...others] = nodes.map(({ port }) => port);
    const [httpPort, httpsPort] = [await freePort(), await freePort()];
    const authority = await startProxy(name, { http: httpPort, https: httpsPort, service, others });
    const nodeOf = async (path: string) => {
      const [response] = await once(
        secureRequest(`https://localhost:${httpsPort}${path}`, { ca: authority, agent: false }).end(),
        'response',
      );
      return text(response);
    };
    const ids = Array.from({ length: 24 }, (_, index) => index + 1);
    const served = await Promise.all(ids.map((id) => nodeOf(`/chambers/${id}`)));
    expect(new Set(served)).toEqual(new Set(['0', '1', '2']));
    expect(await Promise.all(ids.map((id) => nodeOf(`/chambers/${id}/events?after=${id}`)))).toEqual(served);
    nodes[Number(served[0])]?.close();
    const rest = await Promise.all(ids.map((id) => nodeOf(`/chambers/${id}`)));
    expect(rest.filter((node) => node === served[0] || node.length !== 1)).toEqual([]);
  });

  it(`behind ${name}, stopping the service closes WebSockets with 1012`, async () => {
    const proxied = await start(name);
    const { path } = await newChamber(proxied);
    const socket = openSocket(proxied, `${path}/stream?after=0`);
    await socket.until(1);
    await proxied.running.stop();
    expect(await socket.closed()).toBe(1012);
  });

  it(`behind ${name}, a signed target arrives byte for byte`, async () => {
    const proxied = await start(name);
    const { by } = await newChamber(proxied);
    for (const target of ['/me?b=2&a=1', '/me?next=%2Fchambers%2f1&q=%7e%C3%a4+', '/me?a;b=%2e%2E//x']) {
      expect(await must(proxied, 'GET', target, { by })).toContain(by.did);
    }
    for (const target of ['/ideas/a%2Fb', '/ideas/%61%2f..%2fb']) {
      const [direct, through] = [
        await ask(proxied, 'GET', target, { direct: true }),
        await ask(proxied, 'GET', target),
      ];
      expect({ status: through.status, body: through.body }).toEqual({ status: direct.status, body: direct.body });
    }
  });

  it(`behind ${name}, the Host header arrives unchanged`, async () => {
    const proxied = await start(name, { PUBLIC_URL: '' });
    const by = new Signer();
    const signedFor = proxied.publicUrl.replace('https:', 'http:');
    const body = JSON.stringify(registrationOf(by));
    await must(proxied, 'POST', '/register', { body });
    const headers = by.sign({ method: 'GET', url: `${signedFor}/me`, created: proxied.running.clock.seconds });
    expect(await must(proxied, 'GET', '/me', { headers })).toContain(by.did);
  });

  it(`behind ${name}, HTTP/2 carries signed requests`, async () => {
    const proxied = await start(name);
    const { by } = await newChamber(proxied);
    const session = connectHttp2(proxied.publicUrl, { ca: proxied.authority });
    atEnd(() => session.destroy());
    const target = '/me?b=2&a=%2F1';
    const created = proxied.running.clock.seconds;
    const signature = by.sign({ method: 'GET', url: proxied.publicUrl + target, created });
    const stream = session.request({ ':path': target, ...signature });
    expect(await text(stream)).toContain(by.did);
  });

  it(`behind ${name}, a body of ${MAX_BODY_BYTES} bytes passes, and a longer one gets the error of the service`, async () => {
    const proxied = await start(name);
    const { by } = await newChamber(proxied);
    const body = '{"patch":{"style":"brief"}}'.padEnd(MAX_BODY_BYTES);
    expect(await must(proxied, 'PUT', '/personality', { by, body })).toContain('"style":"brief"');
    const longer = await ask(proxied, 'PUT', '/personality', { by, body: `${body} ` });
    expect(longer).toMatchObject({ status: 413, body: expect.stringContaining('FORUM_ERR_TOO_LARGE') });
  });

  it(`behind ${name}, limits count each client's real address, whatever its headers claim`, async () => {
    const limits = { REGISTRATIONS_PER_ADDRESS_PER_MINUTE: '1', REGISTRATIONS_PER_ADDRESS_BURST: '2' };
    const proxied = await start(name, limits);
    const register = async (from: string, headers: IncomingHttpHeaders = {}) => {
      const body = JSON.stringify(registrationOf(new Signer()));
      return (await ask(proxied, 'POST', '/register', { body, from, headers })).status;
    };
    const statuses = [await register('127.0.0.2'), await register('127.0.0.2'), await register('127.0.0.2')];
    expect(statuses).toEqual([200, 200, 429]);
    expect(await register('127.0.0.2', { forwarded: 'for=192.0.2.7' })).toBe(429);
    expect(await register('127.0.0.2', { 'x-forwarded-for': '192.0.2.7' })).toBe(429);
    expect(await register('127.0.0.3')).toBe(200);
  });

  it(`behind ${name}, a process counts each client's real address, and the proxy does not serve its metrics port`, async () => {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const limits = { RATE_PER_ADDRESS_PER_SECOND: '1', RATE_PER_ADDRESS_BURST: '5' };
    const ports = { PORT: String(port), METRICS_PORT: String(metricsPort) };
    const { url } = await startProcess(':memory:', { ...ports, ...limits, TRUSTED_PROXIES: '127.0.0.1' });
    const [httpPort, httpsPort] = [await freePort(), await freePort()];
    const authority = await startProxy(name, { http: httpPort, https: httpsPort, service: port });
    const statusFor = async (from: string, path: string) => {
      const options = {
        port: httpsPort,
        host: 'localhost',
        ca: authority,
        agent: false,
        localAddress: from,
        family: 4,
      };
      const [response] = await once(secureRequest({ ...options, path }).end(), 'response');
      response.resume();
      return response.statusCode as number;
    };
    const flood = await Promise.all(Array.from({ length: 20 }, () => statusFor('127.0.0.2', '/health')));
    const rejected = flood.filter((status) => status === 429).length;
    expect(rejected).toBeGreaterThan(0);
    expect(await statusFor('127.0.0.3', '/health')).toBe(200);
    expect(await statusFor('127.0.0.4', '/metrics')).toBe(404);
    expect((await fetch(`${url}/metrics`)).status).toBe(404);
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    expect(metrics).toContain(`chambers_requests_rejected_total{reason="address_rate"} ${rejected}\n`);
  });

  it(`behind ${name}, plain HTTP is redirected with its full target`, async () => {
    const { httpPort: port, running } = await start(name);
    const target = '/me?b=2&a=%2F1';
    const options = { host: '127.0.0.1', port, path: target, headers: { host: 'localhost' } };
    const [{ statusCode, headers }] = await once(plainRequest(options).end(), 'response');
    expect(statusCode).toBe(308);
    expect(headers.location).toMatch(/^https:\/\/localhost[:/]/);
    expect(headers.location.endsWith(target)).toBe(true);
    await running.stop();
  });
});

/** Starts a server that responds to every request with its name. */
async function openNode(node: string): Promise<{ readonly port: number; readonly close: () => void }> {
  const server = createServer((_, response) => response.end(node)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => server.close().closeAllConnections();
  atEnd(close);
  return { port: (server.address() as AddressInfo).port, close };
}

async function start(name: ProxyName, settings: Readonly<Record<string, string>> = {}): Promise<Proxied> {
  const [httpPort, httpsPort] = [await freePort(), await freePort()];
  const publicUrl = `https://localhost:${httpsPort}`;
  const running = await run({ PUBLIC_URL: publicUrl, TRUSTED_PROXIES: '127.0.0.1', ...settings });
  const service = Number(new URL(running.url).port);
  const authority = await startProxy(name, { http: httpPort, https: httpsPort, service });
  return { running, publicUrl, httpPort, authority };
}

/** A registered agent and its chamber in LOBBY, which has one event. */
async function newChamber(proxied: Proxied) {
  const by = new Signer();
  await must(proxied, 'POST', '/register', { body: JSON.stringify(registrationOf(by)) });
  const body = JSON.stringify({ name: 'Test', ...deadlinesFrom(proxied.running.clock.read()) });
  const { chamberId } = JSON.parse(await must(proxied, 'POST', '/chambers', { by, body }));
  return { by, path: `/chambers/${chamberId}` };
}

async function must(proxied: Proxied, method: string, path: string, call?: Call): Promise<string> {
  const { status, body } = await ask(proxied, method, path, call);
  if (status !== 200) throw new Error(`${method} ${path}: ${status} ${body}`);
  return body;
}

/** Sends the target unchanged, whereas fetch would normalise it. */
async function ask(
  proxied: Proxied,
  method: string,
  path: string,
  { by, body, headers, from, direct = false }: Call & { readonly direct?: boolean } = {},
) {
  const created = proxied.running.clock.seconds;
  const signature = by?.sign({ method, url: proxied.publicUrl + path, body, created });
  const content = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length };
  const options: RequestOptions = {
    method,
    path,
    headers: { ...content, ...signature, ...headers },
    ...(direct ? hostOf(proxied.running.url) : { ...hostOf(proxied.publicUrl), ca: proxied.authority }),
    ...(from === undefined ? {} : { localAddress: from, family: 4 }),
    agent: false,
  };
  const request = direct ? plainRequest(options) : secureRequest(options);
  const [response] = await once(request.end(body), 'response');
  return { status: response.statusCode as number, body: await text(response) };
}

function hostOf(url: string) {
  const { hostname, port } = new URL(url);
  return { hostname, port };
}

function openSocket({ publicUrl, authority }: Proxied, path: string): Consumer {
  const socket = new WebSocket(publicUrl.replace('https:', 'wss:') + path, { ca: authority });
  atEnd(() => socket.terminate());
  return new Consumer(socket);
}

/** Opens server-sent events; the returned function waits for that many and returns their lines. */
async function openEvents({ publicUrl, authority }: Proxied, path: string) {
  const headers = { accept: 'text/event-stream' };
  const request = secureRequest({ ...hostOf(publicUrl), path, headers, ca: authority, agent: false }).end();
  atEnd(() => void request.destroy());
  const [response] = await once(request, 'response');
  expect(response.statusCode).toBe(200);
  let received = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk;
  });
  const lines = () => [...received.matchAll(/^data: (.*)$/gm)].map(([, line]) => line);
  return async (count: number) => {
    while (lines().length < count) await once(response, 'data');
    return lines();
  };
}

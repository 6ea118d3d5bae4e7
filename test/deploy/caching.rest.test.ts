// The cache of the nginx recipe serves immutable content without the service, and never anything that has changed.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../../src/demo/free-port.ts';
import { readPages } from '../../src/log/pages.ts';
import { recordCommit } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { appendDebates } from '../kit/debates.ts';
import { requireInstalled } from '../kit/programs.ts';
import { debating, type Running, run } from '../kit/service.ts';
import { atEnd } from '../kit/temporary.ts';
import { startProxy } from './recipes.ts';

/** The requirement is 10,000 readers, which takes minutes. */
const { READERS = '120' } = process.env;
const EVENTS = 10_000;
const PAGE = 1_000;
const READERS_AT_ONCE = 100;
const SLOW = { timeout: 600_000 };

interface Cached {
  readonly running: Running;
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Got>;
  /** Returns the number of requests to the route that reached the service. */
  readonly served: (route: string) => Promise<number>;
}

interface Got {
  readonly status: number;
  readonly body: Buffer;
  readonly headers: IncomingMessage['headers'];
}

describe('the cache of nginx', SLOW, () => {
  beforeEach(({ skip }) => {
    requireInstalled(skip, 'nginx', 'openssl');
  });

  it(`nginx serves ${READERS} readers (READERS) of an ended chamber with two requests to the service per page`, async () => {
    const { running, get, served } = await start();
    const { by, id } = await debating(running);
    await appendDebates(running, { did: by.did, chamberId: id, count: EVENTS - 3 });
    running.clock.advance(5 * HOUR);
    await recordCommit(running.service.forum, id);
    const { log } = running.service.forum.store;
    const pages = await Promise.all(
      Array.from({ length: EVENTS / PAGE }, (_, index) => pageOf(running, id, index * PAGE)),
    );
    const read = async (reader: number) => {
      const isPacked = reader % 2 === 0;
      for (let after = 0, isEnd = false; !isEnd; after += PAGE) {
        const path = `/chambers/${id}/events?log=${log.logId}&after=${after}&limit=${PAGE}`;
        const { status, body, headers } = await get(path, isPacked ? { 'accept-encoding': 'gzip' } : {});
        expect([status, headers['content-encoding']]).toEqual([200, isPacked ? 'gzip' : undefined]);
        const page = pages[after / PAGE] as Buffer;
        // The bodies are not decompressed, which would take longer than serving them.
        const isRight = reader >= READERS_AT_ONCE || (isPacked ? gunzipSync(body) : body).equals(page);
        expect([path, isRight]).toEqual([path, true]);
        isEnd = headers['stream-end'] === 'true';
        expect(isEnd).toBe(after + PAGE === EVENTS);
      }
      expect((await get(`/chambers/${id}/outcome`)).status).toBe(200);
    };
    let next = 0;
    const readOn = async () => {
      while (next < Number(READERS)) await read(next++);
    };
    await Promise.all(Array.from({ length: READERS_AT_ONCE }, readOn));
    const [events, outcomes] = [await served('/chambers/:id/events'), await served('/chambers/:id/outcome')];
    console.log(`${READERS} readers: ${events} requests for ${EVENTS / PAGE} pages, ${outcomes} for the outcome`);
    expect(events).toBeLessThanOrEqual((2 * EVENTS) / PAGE);
    expect(outcomes).toBeLessThanOrEqual(2);
  });

  it('nginx serves no outdated content of a live chamber', async () => {
    const { running, get, served } = await start();
    const { by, id } = await debating(running);
    const { forum } = running.service;
    const { logId } = forum.store.log;
    const path = (after: number) => `/chambers/${id}/events?log=${logId}&after=${after}&limit=${PAGE}`;
    for (let events = 2; events < 2_100; events += 99) {
      for (const after of [0, 1_000, 2_000]) {
        const lines = after > events ? [] : linesOf(await get(path(after)));
        expect(lines).toHaveLength(Math.max(0, Math.min(events - after, PAGE)));
        if (after <= events) expect(Buffer.from(lines.join('')).equals(await pageOf(running, id, after))).toBe(true);
      }
      expect((await get(`/chambers/${id}/outcome`)).status).toBe(409);
      expect(linesOf(await get(`/chambers/${id}/events`))).toHaveLength(Math.min(events, PAGE));
      await appendDebates(running, { did: by.did, chamberId: id, count: 99 });
    }
    running.clock.advance(5 * HOUR);
    await recordCommit(forum, id);
    const last = await get(path(2_000));
    expect([linesOf(last).length, last.headers['stream-end']]).toEqual([(await head(running, id)) - 2_000, 'true']);
    const outcome = await get(`/chambers/${id}/outcome`);
    expect([outcome.status, JSON.parse(outcome.body.toString())]).toMatchObject([200, { chamberId: id }]);
    const before = await served('/chambers/:id/outcome');
    for (const query of ['', '', '?x=1'])
      expect((await get(`/chambers/${id}/outcome${query}`)).body).toEqual(outcome.body);
    // Responses to requests with a query are not cached.
    expect(await served('/chambers/:id/outcome')).toBe(before + 1);
  });
});

async function start(): Promise<Cached> {
  const [http, https, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const proxyUrl = `https://localhost:${https}`;
  const running = await run({ TRUSTED_PROXIES: '127.0.0.1', METRICS_PORT: `${metricsPort}` });
  const service = Number(new URL(running.url).port);
  const ca = await startProxy('nginx', { http, https, service });
  const agent = new Agent({ keepAlive: true, maxSockets: READERS_AT_ONCE, ca });
  atEnd(() => agent.destroy());
  const get: Cached['get'] = async (path, headers = {}) => {
    const [response] = await once(request(proxyUrl + path, { agent, headers }).end(), 'response');
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  };
  const served = async (route: string) => {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    const counts = metrics.matchAll(/^chambers_request_duration_seconds_count\{([^}]*)\} (\d+)$/gm);
    const matching = [...counts].filter(([, labels]) => labels?.includes(`route="${route}"`));
    return matching.reduce((sum, [, , count]) => sum + Number(count), 0);
  };
  return { running, get, served };
}

/** Returns the page as the log has it. */
async function pageOf(running: Running, chamberId: number, after: number): Promise<Buffer> {
  const until = Math.min(await head(running, chamberId), after + PAGE);
  const parts: Buffer[] = [];
  const { log } = running.service.forum.store;
  for await (const { ndjson } of readPages(log, { stream: chamberId, after, until, lane: 'bulk' })) parts.push(ndjson);
  return Buffer.concat(parts);
}

function head({ service }: Running, chamberId: number): Promise<number> {
  return service.forum.store.log.lastEventId(chamberId);
}

function linesOf({ body }: Got): readonly string[] {
  return body.toString().match(/.*\n/g) ?? [];
}

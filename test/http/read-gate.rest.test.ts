// Reads are queued per address. If an address leaves its responses unread, or has used more than its share of time, further reads are
// rejected.
import { describe, expect, it, vi } from 'vitest';
import { appendDebates } from '../kit/debates.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { debating, type Running, run, runDebating } from '../kit/service.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { get } from '../kit/wire.ts';

const EVENTS = 200;
const RATE_REFUSAL = { status: 429, body: { error: 'FORUM_ERR_RATE' } };

describe('an address over its share of the main thread', () => {
  const settings = { WORK_MS_PER_ADDRESS_PER_SECOND: '1', WORK_MS_PER_ADDRESS_BURST: '5' };
  const callAs = async ({ url }: Running, address: string, path: string) => {
    const response = await fetch(url + path, { headers: { 'x-forwarded-for': address } });
    return {
      status: response.status,
      retryAfter: Number(response.headers.get('retry-after')),
      body: await response.json(),
    };
  };

  it('an address over its share of the main thread gets 429 with Retry-After until it is within its share again; other addresses are served', async () => {
    const running = await run({ ...settings, TRUSTED_PROXIES: '127.0.0.0/8' });
    // It is made at its first request, which takes some hundred milliseconds.
    expect((await callAs(running, '192.0.2.1', '/openapi.json')).status).toBe(200);
    const refused = await callAs(running, '192.0.2.1', '/health');
    expect(refused).toMatchObject(RATE_REFUSAL);
    expect(refused.retryAfter).toBeGreaterThan(1);
    expect((await callAs(running, '192.0.2.2', '/health')).status).toBe(200);
  });

  it('an address over its share of the main thread still gets the rest of a history that it has begun to read, at the rate of its share', async () => {
    const path = temporaryDatabase();
    const before = await run({ DATABASE_PATH: path });
    const { by, id } = await debating(before);
    await appendDebates(before, { did: by.did, chamberId: id, count: EVENTS, bulk: 'x'.repeat(50_000) });
    await before.stop();
    const limits = { WORK_MS_PER_ADDRESS_PER_SECOND: '100', WORK_MS_PER_ADDRESS_BURST: '20' };
    const { url } = await run({ DATABASE_PATH: path, ...limits });
    const response = await fetch(`${url}/chambers/${id}/events?limit=10000`);
    await vi.waitUntil(async () => (await get(url, '/health')).status === 429, { timeout: 10_000, interval: 0 });
    expect((await response.text()).trimEnd().split('\n')).toHaveLength(2 + EVENTS);
  });
});

describe('an address that does not read its responses', () => {
  it('an address that does not read its responses gets 429 for further reads until it has read them; other requests are served', async () => {
    const { running, by, id } = await runDebating({ READS_PER_ADDRESS_MAX: '2' });
    await appendDebates(running, { did: by.did, chamberId: id, count: 300, bulk: 'x'.repeat(60_000) });
    const path = `/chambers/${id}/events?limit=10000`;
    const readers = [await RawSocket.open(running.url), await RawSocket.open(running.url)];
    for (const reader of readers) {
      reader.socket.pause();
      reader.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await vi.waitUntil(() => reader.socket.bytesRead > 0);
    }
    await vi.waitUntil(async () => (await get(running.url, `/chambers/${id}`)).status === 429, { timeout: 10_000 });
    const refused = await get(running.url, '/chambers');
    expect(refused).toMatchObject(RATE_REFUSAL);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect((await get(running.url, '/health')).status).toBe(200);
    readers[0]?.destroy();
    await vi.waitUntil(async () => (await get(running.url, `/chambers/${id}`)).status === 200, { timeout: 10_000 });
  });

  it('an address that does not read its responses may have as many streams as before, because streams have their own limit', async () => {
    const { running, id } = await runDebating({ READS_PER_ADDRESS_MAX: '1' });
    for (let stream = 0; stream < 3; stream++) {
      const source = await RawSocket.open(running.url);
      source.write(`GET /chambers/${id}/stream?after=0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
      await source.receive(/id: 2\n/);
    }
    expect((await get(running.url, '/chambers')).status).toBe(200);
  });
});

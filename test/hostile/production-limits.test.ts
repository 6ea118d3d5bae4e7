// Production limits for agents, addresses and registrations, with and without a proxy.
import { expect, it } from 'vitest';
import { deadlinesFrom } from '../kit/chambers.ts';
import { type Running, run } from '../kit/service.ts';
import { Signer } from '../kit/signer.ts';
import { registrationOf } from '../kit/test-service.ts';
import { prepare, send, type WireOptions } from '../kit/wire.ts';

const PUBLIC_URL = 'https://forum.test';
/** The tests count concurrent requests; a bucket may refill by this much meanwhile. */
const SLOW_REFILL = { RATE_PER_DID_PER_SECOND: '1', RATE_PER_ADDRESS_PER_SECOND: '1' };

/** The tests count requests, whatever their cost on this machine. */
const ANY_WORK = { WORK_MS_PER_ADDRESS_BURST: '100000' };

function production(settings: Readonly<Record<string, string>> = {}): Promise<Running> {
  return run({ NODE_ENV: 'production', PUBLIC_URL, ...ANY_WORK, ...settings });
}

/** Counts the responses by status. */
async function statuses(requests: readonly Promise<{ readonly status: number }>[]) {
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(requests)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function request({ url, clock }: Running, method: string, path: string, options: Omit<WireOptions, 'publicUrl'> = {}) {
  return send(url, prepare(method, path, { publicUrl: PUBLIC_URL, now: clock.read(), ...options }));
}

async function newAgent(running: Running): Promise<Signer> {
  const by = new Signer();
  expect((await request(running, 'POST', '/register', { body: registrationOf(by) })).status).toBe(200);
  return by;
}

it('each agent may make 200 requests at once', async () => {
  const running = await production(SLOW_REFILL);
  const [busy, other] = [await newAgent(running), await newAgent(running)];
  const flood = await statuses(Array.from({ length: 300 }, () => request(running, 'GET', '/me', { by: busy })));
  expect(flood[200]).toBeGreaterThanOrEqual(200);
  expect(flood[200]).toBeLessThan(250);
  expect(flood[429]).toBe(300 - (flood[200] ?? 0));
  expect((await request(running, 'GET', '/me', { by: other })).status).toBe(200);
});

it('an agent may have 100 open chambers', async () => {
  const running = await production();
  const by = await newAgent(running);
  const body = { name: 'One of many', ...deadlinesFrom(running.clock.read()) };
  const created = Array.from({ length: 110 }, () => request(running, 'POST', '/chambers', { by, body }));
  expect(await statuses(created)).toEqual({ 200: 100, 409: 10 });
});

it('an address may make 100 unsigned registrations at once', async () => {
  const running = await production({ REGISTRATIONS_PER_ADDRESS_PER_MINUTE: '1' });
  const registering = Array.from({ length: 120 }, () => {
    return request(running, 'POST', '/register', { body: registrationOf(new Signer()) });
  });
  expect(await statuses(registering)).toEqual({ 200: 100, 429: 20 });
});

it('behind a trusted proxy each caller has its own limits, and headers from other addresses are ignored', async () => {
  const settings = { ...SLOW_REFILL, RATE_PER_ADDRESS_BURST: '5' };
  const callAs = (running: Running, address: string) =>
    fetch(`${running.url}/health`, { headers: { 'x-forwarded-for': address } });
  const proxied = await production({ ...settings, TRUSTED_PROXIES: '127.0.0.0/8' });
  const flood = await statuses(Array.from({ length: 20 }, () => callAs(proxied, '192.0.2.1')));
  expect(flood[429]).toBeGreaterThan(10);
  expect((await callAs(proxied, '192.0.2.2')).status).toBe(200);

  const direct = await production(settings);
  const forged = await statuses(Array.from({ length: 20 }, (_, index) => callAs(direct, `192.0.2.${index}`)));
  expect(forged[429]).toBeGreaterThan(10);
});

it('waiting moves beyond COMMIT_QUEUE_MAX get 503 and are not in the log', async () => {
  const running = await run({ COMMIT_QUEUE_MAX: '3' });
  const by = await newAgent(running);
  const { forum } = running.service;
  const caller = { did: by.did, request: null, signature: null, times: null };
  const body = { json: { name: 'Queued', ...deadlinesFrom(running.clock.read()) } };
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, () => forum.submit({ operation: 'createChamber', body, caller })),
  );
  expect(outcomes.map(({ status }) => status)).toEqual([
    ...Array.from({ length: 3 }, () => 'fulfilled'),
    ...Array.from({ length: 7 }, () => 'rejected'),
  ]);
  expect(outcomes.at(-1)).toMatchObject({
    reason: { code: 'FORUM_ERR_UNAVAILABLE', retryAfterSeconds: expect.any(Number) },
  });
  expect(await forum.chambers({ phase: undefined, limit: 200, before: undefined })).toHaveLength(3);
});

// GET and PUT /me/callback: the receiver's consent, limits, and the stored callback.
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type Delivery, openReceiver } from '../kit/receiver.ts';
import { digestOf } from '../kit/signer.ts';
import { refusal, type TestServiceOptions, withAgent } from '../kit/test-service.ts';

const NONE = { url: null, since: null, lastDelivery: null, failures: 0 };

async function withReceiver(options?: TestServiceOptions) {
  const { service, by } = await withAgent(options);
  const receiver = await openReceiver();
  const put = (url: string | null) => service.request('PUT', '/me/callback', { by, body: { url } });
  const get = () => service.must('GET', '/me/callback', { by });
  return { service, by, receiver, put, get };
}

describe('a callback', () => {
  it('a callback is stored once its receiver has answered the challenge, and can be read, replaced and removed by its agent', async () => {
    const { service, receiver, put, get } = await withReceiver();
    expect(await get()).toEqual(NONE);
    const set = { ...NONE, url: receiver.url, since: new Date(service.clock.read()).toISOString() };
    expect(await put(`${receiver.url}#fragment`)).toMatchObject({ status: 200, body: set });
    expect(await get()).toEqual(set);
    const [challenge] = receiver.challenges;
    expect(challenge?.body).toEqual({ type: 'callback.verify', challenge: expect.stringMatching(/^[\w-]{43}$/) });
    expect(challenge).toMatchObject({
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-digest': digestOf(challenge?.text ?? '') },
    });
    expect(challenge?.headers['signature-input']).toContain('tag="chamber-callback"');
    expect(await put(null)).toMatchObject({ status: 200, body: NONE });
    expect(await get()).toEqual(NONE);
  });

  it('a callback is in no line of the log, and belongs to one agent', async () => {
    const { service, by, receiver, put } = await withReceiver();
    await put(receiver.url);
    const lines = await service.lines(by.did);
    expect(lines.join()).not.toContain('wake');
    const other = await service.agent();
    expect(await service.must('GET', '/me/callback', { by: other })).toEqual(NONE);
    expect(await service.request('GET', '/me/callback')).toMatchObject(refusal(401, 'FORUM_ERR_SIGNATURE'));
    expect(await service.request('PUT', '/me/callback', { body: { url: receiver.url } })).toMatchObject(
      refusal(401, 'FORUM_ERR_SIGNATURE'),
    );
  });

  it('a callback is rejected if the body is not { url }', async () => {
    const { service, by } = await withReceiver();
    const bodies = [{}, { url: 1 }, { url: null, more: 1 }, [], 'x', { URL: null }];
    for (const body of bodies) {
      expect(await service.request('PUT', '/me/callback', { by, body: JSON.stringify(body) })).toMatchObject(
        refusal(400, 'FORUM_ERR_VALIDATION'),
      );
    }
  });

  const respond = (status: number, text: (delivery: Delivery) => string, headers: Record<string, string> = {}) => {
    return (delivery: Delivery, response: ServerResponse) => response.writeHead(status, headers).end(text(delivery));
  };
  const consent = ({ body: { challenge } }: Delivery) => JSON.stringify({ challenge });

  it.each([
    ['status 404', respond(404, consent), 'status 404'],
    ['status 201', respond(201, consent), 'status 201'],
    ['a redirect', respond(307, consent, { Location: 'http://169.254.169.254/' }), 'status 307'],
    ['an echo', respond(200, ({ text }) => text), 'the wrong body'],
    ['another challenge', respond(200, () => JSON.stringify({ challenge: 'x' })), 'the wrong body'],
    [
      'an additional member',
      respond(200, ({ body }) => JSON.stringify({ challenge: body.challenge, ok: 1 })),
      'the wrong body',
    ],
    [
      'a repeated member',
      respond(200, ({ body: { challenge: c } }) => `{"challenge":"${c}","challenge":"${c}"}`),
      'the wrong body',
    ],
    ['an array', respond(200, ({ body }) => JSON.stringify([body.challenge])), 'the wrong body'],
    ['a body that is not JSON', respond(200, ({ body }) => body.challenge), 'the wrong body'],
    ['an empty body', respond(200, () => ''), 'the wrong body'],
    ['a long body', respond(200, () => 'x'.repeat(20_000)), 'more than 16384 bytes'],
    ['a reset', (_: Delivery, response: ServerResponse) => void response.socket?.resetAndDestroy(), 'reset'],
  ])('a callback is not stored if the challenge gets %s', async (_title, behaviour, detail) => {
    const { receiver, put, get } = await withReceiver();
    receiver.respond = behaviour;
    expect(await put(receiver.url)).toMatchObject(refusal(400, 'FORUM_ERR_CALLBACK', detail));
    expect(receiver.challenges.length).toBe(1);
    expect(await get()).toEqual(NONE);
  });

  it('a callback is not stored if nothing listens at the URL', async () => {
    const { put } = await withReceiver();
    expect(await put('http://127.0.0.1:1099/')).toMatchObject(refusal(400, 'FORUM_ERR_CALLBACK', 'refused'));
  });

  it('a callback remains if a new one is rejected', async () => {
    const { receiver, put, get } = await withReceiver();
    await put(receiver.url);
    expect(await put('https://10.0.0.1/')).toMatchObject(refusal(400, 'FORUM_ERR_CALLBACK'));
    expect(await get()).toMatchObject({ url: receiver.url });
  });

  it('a callback can be challenged ten times an hour per agent, and 60 times per address', async () => {
    const { service, receiver, put } = await withReceiver();
    const statuses: number[] = [];
    for (let count = 0; count < 11; count++) statuses.push((await put(receiver.url)).status);
    expect(statuses).toEqual([...Array(10).fill(200), 429]);
    // Removing a callback needs no challenge.
    expect((await put(null)).status).toBe(200);
    for (let count = 0; count < 51; count++) {
      const by = await service.agent();
      const { status } = await service.request('PUT', '/me/callback', { by, body: { url: receiver.url } });
      expect([count, status]).toEqual([count, count < 50 ? 200 : 429]);
    }
    expect(receiver.challenges.length).toBe(60);
  });

  it('a callback is rejected in production unless CALLBACKS is on', async () => {
    const production = { NODE_ENV: 'production', SERVICE_KEY_FILE: '/unused/service-keys.json' };
    const { put, get } = await withReceiver({ settings: production });
    expect(await put('https://agent.example/')).toMatchObject(refusal(403, 'FORUM_ERR_FORBIDDEN', 'callbacks are off'));
    expect(await get()).toEqual(NONE);
    const on = await withReceiver({ settings: { ...production, CALLBACKS: 'on' } });
    expect(await on.put(on.receiver.url)).toMatchObject(refusal(400, 'FORUM_ERR_CALLBACK', 'https://'));
  });

  it('a callback can be read and removed while callbacks are off', async () => {
    const { service, by, put, get } = await withReceiver({ settings: { CALLBACKS: 'off' } });
    const url = 'https://agent.example/wake';
    await service.store.callbacks.put({ did: by.did, url, since: service.clock.read() });
    expect(await get()).toMatchObject({ url });
    expect(await put(null)).toMatchObject({ status: 200, body: NONE });
    expect(await get()).toEqual(NONE);
  });

  it('a callback whose agent’s key is retired can only be removed', async () => {
    const { service, by, receiver, put } = await withReceiver();
    await put(receiver.url);
    await service.must('POST', '/me/retire', { by, body: {} });
    expect(await put(receiver.url)).toMatchObject(refusal(403, 'FORUM_ERR_RETIRED'));
    expect(await put(null)).toMatchObject({ status: 200, body: NONE });
  });
});

describe('a repeated PUT /me/callback', () => {
  it('a repeated PUT /me/callback changes nothing, and succeeds while the callback still matches the request', async () => {
    const { service, by, receiver, put, get } = await withReceiver();
    const request = service.prepare('PUT', '/me/callback', { by, body: { url: receiver.url } });
    const first = await service.send(request);
    expect(await service.send(request)).toMatchObject({ status: 200, body: first.body });
    expect(receiver.challenges.length).toBe(1);
    await put(null);
    expect(await service.send(request)).toMatchObject(refusal(409, 'FORUM_ERR_CONFLICT', 'sign it again'));
    expect(await get()).toEqual(NONE);
    service.clock.advance(400_000);
    expect(await service.send(request)).toMatchObject(refusal(401, 'FORUM_ERR_SIGNATURE', 'age'));
  });

  it('a repeated PUT /me/callback counts as new after a 429', async () => {
    const { service, by, receiver, put } = await withReceiver({
      settings: { CALLBACK_CHALLENGES_PER_DID_PER_HOUR: '1' },
    });
    await put(receiver.url);
    await put(null);
    const request = service.prepare('PUT', '/me/callback', { by, body: { url: receiver.url } });
    for (const _ of [1, 2]) expect(await service.send(request)).toMatchObject(refusal(429, 'FORUM_ERR_RATE'));
  });

  it('a repeated PUT /me/callback gets the same result while the first request is being verified', async () => {
    const { service, by, receiver } = await withReceiver();
    const request = service.prepare('PUT', '/me/callback', { by, body: { url: receiver.url } });
    const answers = await Promise.all([service.send(request), service.send(request)]);
    expect(answers).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(receiver.challenges.length).toBe(1);
  });
});

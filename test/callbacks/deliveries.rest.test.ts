// Each duty is delivered while it is open, signed, and always with the same id.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { allocationOf, enterPhase, openChamber } from '../kit/chambers.ts';
import { type Delivery, openReceiver, type Receiver } from '../kit/receiver.ts';
import type { Signer } from '../kit/signer.ts';
import { digestOf } from '../kit/signer.ts';
import { PUBLIC_URL, TestService, type TestServiceOptions } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';

async function calling(options?: TestServiceOptions) {
  const service = new TestService(options);
  service.composed.calling.start(PUBLIC_URL);
  return service;
}

async function called(service: TestService): Promise<{ readonly by: Signer; readonly receiver: Receiver }> {
  const [by, receiver] = [await service.agent(), await openReceiver()];
  await service.must('PUT', '/me/callback', { by, body: { url: receiver.url } });
  return { by, receiver };
}

const received = (receiver: Receiver, count: number) =>
  eventually(() => {
    expect(receiver.deliveries.length).toBeGreaterThanOrEqual(count);
    return receiver.deliveries;
  });

/** Waits long enough for a delivery that must not happen. */
const pauseForDelivery = () => new Promise((resolve) => setTimeout(resolve, 2_500));

/** Verifies the signature by RFC 9421, independently of the sources. */
async function expectSigned(service: TestService, { url }: Receiver, { headers, text }: Delivery): Promise<void> {
  const [, label = '', params = ''] = /^([a-z]+)=(.*)$/.exec(String(headers['signature-input'])) ?? [];
  const [, keyid] = /;keyid="([^"]+)"/.exec(params) ?? [];
  expect(params).toMatch(/^\([^)]*\);created=\d+;keyid="[\w-]{43}";alg="ed25519";tag="chamber-callback"$/);
  const created = Number(/;created=(\d+)/.exec(params)?.[1]);
  expect([created, headers['webhook-timestamp']]).toEqual([service.clock.seconds, String(service.clock.seconds)]);
  expect(headers['content-digest']).toBe(digestOf(text));
  const base = [
    '"@method": POST',
    `"@target-uri": ${url}`,
    `"content-digest": ${headers['content-digest']}`,
    `"webhook-id": ${headers['webhook-id']}`,
    `"webhook-timestamp": ${headers['webhook-timestamp']}`,
    `"@signature-params": ${params}`,
  ].join('\n');
  const { keys } = await service.must('GET', '/.well-known/http-message-signatures-directory');
  const jwk = keys.find((key: { kid: string; purpose: string }) => key.kid === keyid && key.purpose === 'receipts');
  const [, signature = ''] = /^callback=:([^:]+):$/.exec(String(headers['signature'])) ?? [];
  expect(label).toBe('callback');
  const key = createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: 'jwk' });
  expect(verify(null, Buffer.from(base), key, Buffer.from(signature, 'base64'))).toBe(true);
}

describe('a duty', { timeout: 60_000 }, () => {
  it('a duty is delivered once, signed, without text by another agent', async () => {
    const service = await calling();
    const { by, receiver } = await called(service);
    const other = await service.agent();
    const id = await openChamber(service, [by, other], {
      name: 'A secret name',
      topic: 'A secret topic',
      turnSeconds: 60,
    });
    await pauseForDelivery();
    expect(receiver.deliveries).toEqual([]);
    await enterPhase(service, id, 'PROPOSAL');
    const [delivery] = await received(receiver, 1);
    const { todo } = await service.must('GET', '/me/todo', { by });
    const { phaseEndsAt, turnEndsAt, lastEventId } = todo[0];
    const { logId } = service.log;
    const due = { chamberId: id, must: 'pass', phaseEndsAt, turnEndsAt, lastEventId };
    expect(delivery?.body).toEqual({ type: 'todo.due', did: by.did, service: PUBLIC_URL, logId, due, more: 0 });
    expect(delivery?.text).not.toContain('secret');
    const began = new Date(Date.parse(turnEndsAt) - 60_000).toISOString();
    const identity = JSON.stringify([logId, by.did, id, 'pass', began]);
    expect(delivery?.headers['webhook-id']).toBe(createHash('sha256').update(identity).digest('base64url'));
    if (delivery !== undefined) await expectSigned(service, receiver, delivery);
    await pauseForDelivery();
    expect(receiver.deliveries.length).toBe(1);
    await eventually(async () => {
      const { lastDelivery, failures } = await service.must('GET', '/me/callback', { by });
      expect([lastDelivery, failures]).toEqual([{ at: new Date(service.clock.read()).toISOString(), status: 204 }, 0]);
    });
  });

  it('a duty is delivered for each turn, commitment and reveal, and only to its agent', async () => {
    const service = await calling();
    const [ann, bob] = [await called(service), await called(service)];
    const id = await openChamber(service, [ann.by, bob.by], { turnSeconds: 60 });
    await enterPhase(service, id, 'PROPOSAL');
    await received(ann.receiver, 1);
    expect(bob.receiver.deliveries).toEqual([]);
    await service.must('POST', `/chambers/${id}/pass`, { by: ann.by });
    await received(bob.receiver, 1);
    // The turn expires, and the agent's next turn is another duty.
    service.clock.advance(60_000);
    await received(ann.receiver, 2);
    await enterPhase(service, id, 'ALLOCATE_COMMIT');
    await received(ann.receiver, 3);
    await received(bob.receiver, 2);
    const { commit } = allocationOf(id, ann.by);
    await service.must('POST', `/chambers/${id}/allocate/commit`, { by: ann.by, body: commit });
    await enterPhase(service, id, 'ALLOCATE_REVEAL');
    await received(ann.receiver, 4);
    await pauseForDelivery();
    const musts = ({ receiver }: typeof ann) => receiver.deliveries.map(({ body }) => body.due.must);
    expect(musts(ann)).toEqual(['pass', 'pass', 'commit', 'reveal']);
    // Bob did not commit, so there is nothing to reveal.
    expect(musts(bob)).toEqual(['pass', 'commit']);
    const ids = [...ann.receiver.deliveries, ...bob.receiver.deliveries].map(({ headers }) => headers['webhook-id']);
    expect(new Set(ids).size).toBe(6);
  });

  it('a duty is counted in `more` of the other deliveries', async () => {
    const service = await calling();
    const { by, receiver } = await called(service);
    const ids = [await openChamber(service, [by]), await openChamber(service, [by]), await openChamber(service, [by])];
    await enterPhase(service, ids[0] ?? 0, 'PROPOSAL');
    const deliveries = await received(receiver, 3);
    expect(deliveries.map(({ body }) => body.more)).toEqual([2, 2, 2]);
    expect(deliveries.map(({ body }) => body.due.chamberId).sort()).toEqual(ids);
  });

  it('a duty is delivered even if it was due before the callback was set', async () => {
    const service = await calling();
    const by = await service.agent();
    const id = await openChamber(service, [by]);
    await enterPhase(service, id, 'PROPOSAL');
    const receiver = await openReceiver();
    await service.must('PUT', '/me/callback', { by, body: { url: receiver.url } });
    await received(receiver, 1);
  });

  it('a duty is retried with the same id and a new signature until the response is 2xx', async () => {
    const service = await calling();
    const { by, receiver } = await called(service);
    receiver.status = 503;
    await enterPhase(service, await openChamber(service, [by]), 'PROPOSAL');
    await received(receiver, 1);
    service.clock.advance(1_000);
    await received(receiver, 2);
    receiver.status = 200;
    const [first, second, third] = await received(receiver, 3);
    expect(new Set([first, second, third].map((each) => each?.headers['webhook-id'])).size).toBe(1);
    expect(second?.headers['webhook-timestamp']).not.toBe(first?.headers['webhook-timestamp']);
    if (third !== undefined) await expectSigned(service, receiver, third);
    await eventually(async () => {
      const { failures, lastDelivery } = await service.must('GET', '/me/callback', { by });
      expect([failures, lastDelivery.status]).toEqual([0, 200]);
    });
  });

  it('a duty is not delivered once it is over, and then counts as a failure', async () => {
    const service = await calling();
    const { by, receiver } = await called(service);
    receiver.status = 500;
    const id = await openChamber(service, [by, await service.agent()], { turnSeconds: 600 });
    await enterPhase(service, id, 'PROPOSAL');
    await received(receiver, 1);
    await service.must('POST', `/chambers/${id}/pass`, { by });
    await eventually(async () => {
      const { failures, lastDelivery } = await service.must('GET', '/me/callback', { by });
      expect([failures, lastDelivery.status]).toEqual([1, 500]);
    });
    expect(receiver.deliveries.length).toBeLessThanOrEqual(2);
  });

  it('a duty is not delivered for a retired key', async () => {
    const service = await calling();
    const { by, receiver } = await called(service);
    receiver.status = 500;
    await enterPhase(service, await openChamber(service, [by]), 'PROPOSAL');
    await received(receiver, 1);
    await service.must('POST', '/me/retire', { by, body: {} });
    const { length } = receiver.deliveries;
    await pauseForDelivery();
    await pauseForDelivery();
    expect(receiver.deliveries.length).toBe(length);
  });

  it('a duty is delivered to the callback that replaced another, not to the replaced one', async () => {
    const service = await calling();
    const { by, receiver } = await called(service);
    receiver.status = 500;
    await enterPhase(service, await openChamber(service, [by]), 'PROPOSAL');
    await received(receiver, 1);
    const other = await openReceiver();
    await service.must('PUT', '/me/callback', { by, body: { url: other.url } });
    await received(other, 1);
    expect(receiver.deliveries.length).toBeLessThanOrEqual(2);
  });

  it('a 410 response to a delivery removes the callback', async () => {
    const service = await calling();
    const { by, receiver } = await called(service);
    receiver.status = 410;
    await enterPhase(service, await openChamber(service, [by]), 'PROPOSAL');
    await received(receiver, 1);
    await eventually(async () => {
      expect(await service.must('GET', '/me/callback', { by })).toMatchObject({
        url: null,
        lastDelivery: { status: 410 },
        removed: 'gone',
      });
    });
    await pauseForDelivery();
    expect(receiver.deliveries.length).toBe(1);
  });

  it('a duty is delivered by the next process with the same id, at least once', async () => {
    const service = await calling();
    const { by, receiver } = await called(service);
    await enterPhase(service, await openChamber(service, [by]), 'PROPOSAL');
    await received(receiver, 1);
    await service.composed.calling.stop();
    const next = new TestService({ store: service.store, clock: service.clock });
    next.composed.calling.start(PUBLIC_URL);
    const [first, second] = await received(receiver, 2);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    await next.composed.calling.stop();
  });

  it('duties are not searched for while CALLBACKS is off, and cost nothing without a callback', async () => {
    const service = await calling({ settings: { CALLBACKS: 'off' } });
    const by = await service.agent();
    const receiver = await openReceiver();
    await service.store.callbacks.put({ did: by.did, url: receiver.url, since: 1 });
    await enterPhase(service, await openChamber(service, [by]), 'PROPOSAL');
    await pauseForDelivery();
    expect(receiver.deliveries).toEqual([]);
    const other = await calling();
    const reading = vi.spyOn(other.store.callbacks, 'listChambersWithTurns');
    await enterPhase(other, await openChamber(other, [await other.agent()]), 'PROPOSAL');
    await pauseForDelivery();
    expect(reading).not.toHaveBeenCalled();
  });
});

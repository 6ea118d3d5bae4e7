// GET /chambers/:id/outcome: 409 until the chamber is settled, then the same bytes forever.
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { outcomeOf, outcomeText } from '../../projections/outcome.ts';
import type { ServiceFact } from '../../src/vocabulary/events.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import type { Hex } from '../../src/vocabulary/values.ts';
import { allocationOf, enterPhase, openChamber } from '../kit/chambers.ts';
import { TestService, withAgent } from '../kit/test-service.ts';

const TOKEN = `0x${'0a'.repeat(20)}`;

/** Returns a committed chamber whose only idea waits for its token. */
async function committedChamber() {
  const { service, by } = await withAgent();
  const id = await openChamber(service, [by], { topic: 'What to build' });
  const move = (path: string, body: object) => service.must('POST', `/chambers/${id}/${path}`, { by, body });
  await enterPhase(service, id, 'PROPOSAL');
  await move('propose', { name: 'One', ticker: 'ONE', description: '' });
  const { commit, reveal } = allocationOf(id, by, { 'idea-1': 7_000 });
  await enterPhase(service, id, 'ALLOCATE_COMMIT');
  await move('allocate/commit', commit);
  await enterPhase(service, id, 'ALLOCATE_REVEAL');
  await move('allocate/reveal', reveal);
  await enterPhase(service, id, 'COMMITTED');
  return { service, by, id, path: `/chambers/${id}/outcome` };
}

function submitted(txHash: Hex): ServiceFact {
  const transaction = { chainId: 1, nonce: 7, txHash, rawTransaction: '0x00' } as const;
  return { type: 'relay.deploy_submitted', payload: { ideaId: 'idea-1', ...transaction } };
}

async function settledChamber() {
  const chamber = await committedChamber();
  const { service, id: chamberId } = chamber;
  await service.forum.submit({ operation: 'record', chamberId, fact: submitted('0x00') });
  const payload = { ideaId: 'idea-1', tokenAddress: TOKEN, txHash: '0x00', graduatedAt: '2030-01-02T00:00:00.000Z' };
  await service.forum.submit({
    operation: 'record',
    chamberId,
    fact: { type: 'idea.deployed', payload } as ServiceFact,
  });
  const get = (headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    service.app.request(chamber.path, { method, headers }, {});
  return { ...chamber, get };
}

describe('the outcome', () => {
  it('the outcome is 409 until the root is on the chain and each graduated idea has its token', async () => {
    const service = new TestService();
    const id = await openChamber(service, []);
    const open = await service.request('GET', `/chambers/${id}/outcome`);
    expect([open.status, open.body, open.headers.get('cache-control')]).toEqual([
      409,
      {
        error: 'FORUM_ERR_CONFLICT',
        detail: `chamber ${id} is waiting for the end of the reveals, at 2030-01-01T05:00:00.000Z at the latest (it is in LOBBY)`,
      },
      null,
    ]);
    await enterPhase(service, id, 'ALLOCATE_REVEAL');
    service.clock.advance(3_600_000);
    const closed = await service.request('GET', `/chambers/${id}/outcome`);
    expect([closed.status, closed.body.detail]).toEqual([409, `chamber ${id} is waiting for its root on the chain`]);
    const { service: other, path, id: committed } = await committedChamber();
    const pending = await other.request('GET', path);
    expect([pending.status, pending.body.detail]).toEqual([
      409,
      `chamber ${committed} is waiting for the deployment of ONE`,
    ]);
  });

  it('the outcome’s Retry-After lasts at most until the reveals end, and is 3 seconds while it waits for the chain', async () => {
    const service = new TestService();
    const id = await openChamber(service, []);
    const asked = async () => (await service.request('GET', `/chambers/${id}/outcome`)).headers.get('retry-after');
    expect(await asked()).toBe('30');
    await enterPhase(service, id, 'ALLOCATE_REVEAL');
    service.clock.advance(3_600_000 - 12_500);
    expect(await asked()).toBe('13');
    service.clock.advance(12_500);
    expect(await asked()).toBe('3');
    const { service: other, path } = await committedChamber();
    const pending = await other.request('GET', path);
    expect([pending.headers.get('retry-after'), pending.body.retryAfter]).toEqual(['3', undefined]);
  });

  it('the outcome is canonical JSON, computed from the lines alone', async () => {
    const { service, by, id, get } = await settledChamber();
    const response = await get();
    const text = await response.text();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(text).toBe(canonicalJson(JSON.parse(text)));
    expect(JSON.parse(text)).toMatchObject({
      chamberId: id,
      topic: 'What to build',
      createdBy: by.did,
      ideas: [{ ideaId: 'idea-1', backers: 1, totalBps: 7_000, graduated: true, tokenAddress: TOKEN, failure: null }],
      abstainedBps: 3_000,
      lastEventId: 8,
    });
    const { state } = await service.forum.findChamber(String(id));
    const outcome = outcomeOf(state, 0);
    expect('view' in outcome && outcomeText(outcome.view)).toBe(text);
  });

  it('the outcome is cacheable for a day, and has an ETag', async () => {
    const { service, get } = await settledChamber();
    const { headers } = await get();
    const tag = headers.get('etag') ?? '';
    expect(tag).toMatch(/^W\/"[\w-]{43}"$/);
    expect(headers.get('cache-control')).toBe('public, max-age=86400, immutable');
    expect(headers.get('log-id')).toBe(service.log.logId);
    for (const named of [tag, tag.slice('W/'.length), `"other", ${tag}`, '*']) {
      const response = await get({ 'if-none-match': named });
      expect([named, response.status, await response.text()]).toEqual([named, 304, '']);
      expect(response.headers.get('etag')).toBe(tag);
    }
    expect((await get({ 'if-none-match': 'W/"other"' })).status).toBe(200);
  });

  it('the outcome has the same content with gzip, and the same headers with HEAD', async () => {
    const { get } = await settledChamber();
    const plain = await get();
    const packed = await get({ 'accept-encoding': 'br, gzip' });
    const head = await get({}, 'HEAD');
    expect([packed.headers.get('content-encoding'), packed.headers.get('vary')]).toEqual(['gzip', 'Accept-Encoding']);
    expect(gunzipSync(Buffer.from(await packed.arrayBuffer())).toString()).toBe(await plain.text());
    expect([head.status, await head.text(), head.headers.get('etag')]).toEqual([200, '', plain.headers.get('etag')]);
  });

  it('the outcome does not change when a transaction is sent again later', async () => {
    const { service, id: chamberId, get } = await settledChamber();
    const before = await get();
    await service.forum.submit({ operation: 'record', chamberId, fact: submitted('0x01') });
    expect(await service.log.lastEventId(chamberId)).toBe(JSON.parse(await before.clone().text()).lastEventId + 1);
    const after = await get();
    expect(after.headers.get('etag')).toBe(before.headers.get('etag'));
    expect(await after.text()).toBe(await before.text());
  });

  it('the outcome ignores the query, as endpoints without parameters do', async () => {
    const { service, path } = await settledChamber();
    expect((await service.request('GET', `${path}?x=1`)).status).toBe(200);
  });
});

// `seen`: a move names the last event that its agent has verified, so that a service with two histories is detected.
import { describe, expect, it } from 'vitest';
import { leafHash } from '../../src/crypto/merkle.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { allocationOf, enterPhase, openChamber } from '../kit/chambers.ts';
import type { Signer } from '../kit/signer.ts';
import { type TestService, withAgent, withTwoAgents } from '../kit/test-service.ts';

const OTHER_LEAF = `0x${'ab'.repeat(32)}`;

async function leafOf(service: TestService, chamberId: number, eventId: number): Promise<string> {
  return toHex(leafHash(Buffer.from((await service.lines(chamberId))[eventId - 1] ?? '')));
}

async function inProposal(rounds = {}) {
  const { service, by } = await withAgent();
  const chamberId = await openChamber(service, [by], rounds);
  await enterPhase(service, chamberId, 'PROPOSAL');
  return { service, by, chamberId };
}

const move = (service: TestService, path: string, by: Signer, body: object) =>
  service.request('POST', path, { by, body });
const IDEA = { name: 'Rain', ticker: 'RAIN' };

describe('seen', () => {
  it.each([1, 2])('seen is accepted with the leaf of event %s, and kept in the evidence', async (eventId) => {
    const { service, by, chamberId } = await inProposal();
    const seen = { eventId, leaf: await leafOf(service, chamberId, eventId) };
    const { status } = await move(service, `/chambers/${chamberId}/propose`, by, { ...IDEA, seen });
    expect(status).toBe(200);
    const { request, payload } = JSON.parse((await service.lines(chamberId))[2] ?? '');
    expect(JSON.parse(request.body).seen).toEqual(seen);
    expect(payload).not.toHaveProperty('seen');
  });

  it('seen may have an upper-case leaf', async () => {
    const { service, by, chamberId } = await inProposal();
    const leaf = (await leafOf(service, chamberId, 1)).toUpperCase().replace('0X', '0x');
    const { status } = await move(service, `/chambers/${chamberId}/pass`, by, { seen: { eventId: 1, leaf } });
    expect(status).toBe(200);
  });

  it.each<[number, boolean]>([
    [1, true],
    [2, true],
    [3, false],
    [1_000_000, false],
  ])('seen with another leaf of event %s is 409 with both, and writes nothing', async (eventId, exists) => {
    const { service, by, chamberId } = await inProposal();
    const seen = { eventId, leaf: OTHER_LEAF };
    const { status, body } = await move(service, `/chambers/${chamberId}/pass`, by, { seen });
    const leaf = exists ? await leafOf(service, chamberId, eventId) : null;
    expect([status, body.error]).toEqual([409, 'FORUM_ERR_HISTORY']);
    expect(body.history).toEqual({ eventId, seen: OTHER_LEAF, leaf });
    expect(body.detail).toContain(OTHER_LEAF);
    if (leaf !== null) expect(body.detail).toContain(leaf);
    expect(await service.lines(chamberId)).toHaveLength(2);
  });

  it.each<[unknown, string]>([
    [{ eventId: 0, leaf: OTHER_LEAF }, 'seen.eventId'],
    [{ eventId: '1', leaf: OTHER_LEAF }, 'seen.eventId'],
    [{ eventId: 1, leaf: '0x12' }, 'seen.leaf'],
    [{ eventId: 1 }, 'seen.leaf'],
    [{ eventId: 1, leaf: OTHER_LEAF, more: 1 }, 'seen'],
    [null, 'seen'],
    ['1', 'seen'],
  ])('seen as %j is 400, and the error names the path of the fault', async (seen, path) => {
    const { service, by, chamberId } = await inProposal();
    const { status, body } = await move(service, `/chambers/${chamberId}/pass`, by, { seen });
    expect([status, body.error]).toEqual([400, 'FORUM_ERR_VALIDATION']);
    expect(body.detail).toMatch(new RegExp(`^${path}: `));
  });

  it('seen is an unknown member of a creation, and of a change of the personality', async () => {
    const { service, by, chamberId } = await inProposal();
    const seen = { eventId: 1, leaf: await leafOf(service, chamberId, 1) };
    expect((await service.request('PUT', '/personality', { by, body: { patch: {}, seen } })).body.detail).toMatch(
      /unknown member "seen"/,
    );
    expect((await service.request('POST', '/chambers', { by, body: { name: 'Two', seen } })).body.detail).toMatch(
      /unknown member "seen"/,
    );
  });

  it('seen is checked in every move of a chamber', async () => {
    const seen = { eventId: 1, leaf: OTHER_LEAF };
    const { service, ann, bob } = await withTwoAgents();
    const chamberId = await openChamber(service, [ann], { rounds: { proposal: 1, debate: 1 }, turnSeconds: 60 });
    const refuses = async (path: string, by: Signer, body: object) => {
      const { body: error } = await move(service, `/chambers/${chamberId}/${path}`, by, { ...body, seen });
      expect([path, error.error]).toEqual([path, 'FORUM_ERR_HISTORY']);
      await service.must('POST', `/chambers/${chamberId}/${path}`, { by, body });
    };
    await refuses('join', bob, {});
    await refuses('start', ann, {});
    await refuses('propose', ann, IDEA);
    await refuses('pass', ann, {});
    await refuses('pass', bob, {});
    await refuses('debate', ann, { comment: 'So be it.' });
    await refuses('pass', ann, {});
    await refuses('pass', bob, {});
    const { commit, reveal } = allocationOf(chamberId, ann, { 'idea-1': 10_000 });
    await refuses('allocate/commit', ann, commit);
    await service.must('POST', `/chambers/${chamberId}/allocate/commit`, {
      by: bob,
      body: allocationOf(chamberId, bob).commit,
    });
    await refuses('allocate/reveal', ann, reveal);
  });

  it('seen is checked after phase, membership, turn and idea, and before conflicts', async () => {
    const { service, by, chamberId } = await inProposal();
    const seen = { eventId: 1, leaf: OTHER_LEAF };
    const errorOf = async (path: string, body: object, signer = by) =>
      (await move(service, `/chambers/${chamberId}/${path}`, signer, { ...body, seen })).body.error;
    expect(await errorOf('join', {}, await service.agent())).toBe('FORUM_ERR_PHASE');
    expect(await errorOf('propose', IDEA, await service.agent())).toBe('FORUM_ERR_MEMBER');
    await service.must('POST', `/chambers/${chamberId}/propose`, { by, body: IDEA });
    expect(await errorOf('propose', IDEA)).toBe('FORUM_ERR_HISTORY');
    await enterPhase(service, chamberId, 'DEBATE');
    expect(await errorOf('debate', { comment: 'x', ideaId: 'idea-9' })).toBe('FORUM_ERR_NOT_FOUND');
  });

  it('seen does not prevent the retry of an accepted move', async () => {
    const { service, by, chamberId } = await inProposal();
    const seen = { eventId: 2, leaf: await leafOf(service, chamberId, 2) };
    const prepared = service.prepare('POST', `/chambers/${chamberId}/propose`, { by, body: { ...IDEA, seen } });
    const first = await service.send(prepared);
    await service.must('POST', `/chambers/${chamberId}/pass`, { by });
    expect(await service.send(prepared)).toMatchObject({ status: 200, body: first.body });
  });

  it('seen may name an event that this node has just written, among many concurrent moves', async () => {
    const { service, by, chamberId } = await inProposal();
    for (let eventId = 2; eventId < 12; eventId++) {
      const leaf = await leafOf(service, chamberId, eventId);
      const moves = [OTHER_LEAF, leaf].map((each) =>
        move(service, `/chambers/${chamberId}/pass`, by, { seen: { eventId, leaf: each } }),
      );
      expect((await Promise.all(moves)).map(({ status }) => status)).toEqual([409, 200]);
    }
  });
});

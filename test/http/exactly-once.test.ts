// A signature is accepted once, ever: the same request again gets its first answer and changes nothing.
import { describe, expect, it } from 'vitest';
import type { MoveEvent } from '../../src/vocabulary/events.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { House, type Prepared } from '../kit/house.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

async function inDebate(options: ConstructorParameters<typeof House>[0] = {}) {
  const house = new House(options);
  const by = await house.agent();
  const id = await openChamber(house, [by, await house.agent()]);
  await enterPhase(house, id, 'DEBATE');
  const debate = house.prepare('POST', `/chambers/${id}/debate`, { by, body: { comment: 'hm' } });
  return { house, by, id, debate };
}

describe('the same request again', () => {
  it('gets the first response', async () => {
    const { house, id, debate } = await inDebate();
    const first = await house.send(debate);
    const again = await house.send(debate);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await house.lines(id)).toHaveLength(4);
  });

  it('gets it while the first one is still being written', async () => {
    const { house, id, debate } = await inDebate();
    const answers = await Promise.all([debate, debate, debate].map((request) => house.send(request)));
    expect(answers.map(({ status, body }) => [status, body])).toEqual(Array(3).fill([200, { eventId: 4 }]));
    expect(await house.lines(id)).toHaveLength(4);
  });

  it('gets it when the signature is old and the phase has passed', async () => {
    const { house, debate } = await inDebate();
    await house.send(debate);
    house.clock.advance(3 * HOUR);
    expect(await house.send(debate)).toMatchObject({ status: 200, body: { eventId: 4 } });
  });

  it('gets it when the turn is somebody else’s: a pass names the next agent of then', async () => {
    const { house, by, id } = await inDebate();
    const pass = house.prepare('POST', `/chambers/${id}/pass`, { by });
    const first = await house.send(pass);
    expect(first.status).toBe(200);
    expect((await house.send(pass)).body).toEqual(first.body);
  });

  it('gets it after a restart', async () => {
    const path = temporaryDatabase();
    const { house, id, debate } = await inDebate({ path });
    const first = await house.send(debate);
    await house.close();
    const restarted = new House({ path, clock: house.clock });
    expect((await restarted.send(debate)).body).toEqual(first.body);
    expect(await restarted.lines(id)).toHaveLength(4);
  });

  it('gets it for every kind of command', async () => {
    const house = new House();
    const by = await house.agent();
    const signed = (method: string, path: string, body?: unknown) => house.prepare(method, path, { by, body });
    const once = async (request: Prepared) => {
      const first = await house.send(request);
      expect([first.status, (await house.send(request)).body]).toEqual([200, first.body]);
    };
    const id = await openChamber(house, []);
    await once(signed('PUT', '/personality', { patch: { style: 'dry' } }));
    await once(signed('POST', `/chambers/${id}/join`));
    await enterPhase(house, id, 'PROPOSAL');
    await once(signed('POST', `/chambers/${id}/propose`, { name: 'Idea', ticker: 'ABC' }));
    await enterPhase(house, id, 'ALLOCATE_COMMIT');
    await once(signed('POST', `/chambers/${id}/allocate/commit`, { commitment: `0x${'00'.repeat(32)}` }));
    expect((await house.lines(id)).length).toBe(4);
  });

  it('opens no second chamber', async () => {
    const house = new House();
    const by = await house.agent();
    const deadline = new Date(house.clock.read() + HOUR).toISOString();
    const names = [
      'lobbyDeadline',
      'proposalDeadline',
      'debateDeadline',
      'allocateCommitDeadline',
      'allocateRevealDeadline',
    ];
    const body = { name: 'Test', ...Object.fromEntries(names.map((name) => [name, deadline])) };
    const request = house.prepare('POST', '/chambers', { by, body });
    const answers = [await house.send(request), await house.send(request)];
    expect(answers.map((answer) => answer.body.chamberId)).toEqual([1, 1]);
    expect(await house.must('GET', '/chambers')).toHaveLength(1);
  });
});

describe('a request that was refused', () => {
  it('is decided again while it is fresh', async () => {
    const house = new House();
    const [first, second] = [await house.agent(), await house.agent()];
    const id = await openChamber(house, [first, second]);
    await enterPhase(house, id, 'DEBATE');
    const debate = house.prepare('POST', `/chambers/${id}/debate`, { by: second, body: { comment: 'hm' } });
    expect((await house.send(debate)).body.error).toBe('FORUM_ERR_TURN');
    await house.must('POST', `/chambers/${id}/pass`, { by: first });
    expect((await house.send(debate)).body).toEqual({ eventId: 5 });
  });
});

describe('the log is public, so anybody can send its evidence again', () => {
  async function replay(house: House, event: MoveEvent) {
    const { request } = event;
    if (request === null) throw new Error('the event has no evidence');
    const headers = {
      'content-type': 'application/json',
      'content-digest': request.contentDigest,
      'signature-input': request.signatureInput,
      signature: request.signature,
    };
    const path = new URL(request.targetUri).pathname;
    return house.send({ method: request.method, path, body: request.body || undefined, headers });
  }

  it('which changes nothing, at any line', async () => {
    const { house, id, debate } = await inDebate();
    await house.send(debate);
    const before = await house.lines(id);
    for (const event of await house.events(id)) expect((await replay(house, event as MoveEvent)).status).toBe(200);
    expect(await house.lines(id)).toEqual(before);
    expect(await house.must('GET', '/chambers')).toHaveLength(1);
  });

  it('which does nothing on another service, where the agent is not registered or the address differs', async () => {
    const { house, id, debate } = await inDebate();
    await house.send(debate);
    const [event] = (await house.events(id)).slice(-1);
    const elsewhere = new House({ settings: { PUBLIC_URL: 'https://elsewhere.test' }, clock: house.clock });
    expect(await replay(elsewhere, event as MoveEvent)).toMatchObject({ status: 401 });
  });
});

describe('two equal moves', () => {
  it('are two when their signatures differ by a nonce', async () => {
    const { house, by, id } = await inDebate();
    const path = `/chambers/${id}/debate`;
    const eventIds = [];
    for (const _ of [1, 2]) eventIds.push((await house.must('POST', path, { by, body: { comment: 'hm' } })).eventId);
    expect(eventIds).toEqual([4, 5]);
  });
});

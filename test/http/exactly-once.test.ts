// A signature is accepted once, ever: a retry gets the first response and changes nothing.
import { describe, expect, it } from 'vitest';
import type { MoveEvent } from '../../src/vocabulary/events.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { type Prepared, TestService, withAgent, withTwoAgents } from '../kit/test-service.ts';

async function inDebate(options: ConstructorParameters<typeof TestService>[0] = {}) {
  const { service, by } = await withAgent(options);
  const id = await openChamber(service, [by, await service.agent()]);
  await enterPhase(service, id, 'DEBATE');
  const debate = service.prepare('POST', `/chambers/${id}/debate`, { by, body: { comment: 'hm' } });
  return { service, by, id, debate };
}

describe('a repeated request', () => {
  it('a repeated request gets the first response', async () => {
    const { service, id, debate } = await inDebate();
    const first = await service.send(debate);
    const again = await service.send(debate);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await service.lines(id)).toHaveLength(4);
  });

  it('a repeated request gets the first response while the first request is still being written', async () => {
    const { service, id, debate } = await inDebate();
    const answers = await Promise.all([debate, debate, debate].map((request) => service.send(request)));
    expect(answers.map(({ status, body }) => [status, body])).toEqual(Array(3).fill([200, { eventId: 4 }]));
    expect(await service.lines(id)).toHaveLength(4);
  });

  it("a repeated request gets the first response with a proxy's signature, without one, and with another proxy's", async () => {
    const { service, id, debate } = await inDebate();
    const withLabel = (label: string): Prepared => {
      const { 'signature-input': input, signature } = debate.headers;
      const added = {
        'signature-input': `${label}=("@authority"), ${input}`,
        signature: `${signature}, ${label}=:AAAA:`,
      };
      return { ...debate, headers: { ...debate.headers, ...added } };
    };
    const first = await service.send(withLabel('proxy'));
    for (const request of [debate, withLabel('other'), withLabel('proxy')]) {
      expect(await service.send(request)).toMatchObject({ status: 200, body: first.body });
    }
    const events = await service.events(id);
    expect(events).toHaveLength(4);
    expect(events[3]?.request?.signatureInput).toMatch(/^proxy=\("@authority"\), sig1=/);
  });

  it('a repeated request gets the first response when the signature is old and the phase is over', async () => {
    const { service, debate } = await inDebate();
    await service.send(debate);
    service.clock.advance(3 * HOUR);
    expect(await service.send(debate)).toMatchObject({ status: 200, body: { eventId: 4 } });
  });

  it('a repeated request gets the first response in another member’s turn: a pass still names the same next agent', async () => {
    const { service, by, id } = await inDebate();
    const pass = service.prepare('POST', `/chambers/${id}/pass`, { by });
    const first = await service.send(pass);
    expect(first.status).toBe(200);
    expect((await service.send(pass)).body).toEqual(first.body);
  });

  it('a repeated request gets the first response after a restart', async () => {
    const path = temporaryDatabase();
    const { service, id, debate } = await inDebate({ path });
    const first = await service.send(debate);
    await service.close();
    const restarted = new TestService({ path, clock: service.clock });
    expect((await restarted.send(debate)).body).toEqual(first.body);
    expect(await restarted.lines(id)).toHaveLength(4);
  });

  it('a repeated request gets the first response for every kind of command', async () => {
    const { service, by } = await withAgent();
    const signed = (method: string, path: string, body?: unknown) => service.prepare(method, path, { by, body });
    const once = async (request: Prepared) => {
      const first = await service.send(request);
      expect([first.status, (await service.send(request)).body]).toEqual([200, first.body]);
    };
    const id = await openChamber(service, []);
    await once(signed('PUT', '/personality', { patch: { style: 'dry' } }));
    await once(signed('POST', `/chambers/${id}/join`));
    await enterPhase(service, id, 'PROPOSAL');
    await once(signed('POST', `/chambers/${id}/propose`, { name: 'Idea', ticker: 'ABC' }));
    await enterPhase(service, id, 'ALLOCATE_COMMIT');
    await once(signed('POST', `/chambers/${id}/allocate/commit`, { commitment: `0x${'00'.repeat(32)}` }));
    expect((await service.lines(id)).length).toBe(4);
  });

  it('a repeated request does not open a second chamber', async () => {
    const { service, by } = await withAgent();
    const deadline = new Date(service.clock.read() + HOUR).toISOString();
    const names = [
      'lobbyDeadline',
      'proposalDeadline',
      'debateDeadline',
      'allocateCommitDeadline',
      'allocateRevealDeadline',
    ];
    const body = { name: 'Test', ...Object.fromEntries(names.map((name) => [name, deadline])) };
    const request = service.prepare('POST', '/chambers', { by, body });
    const answers = [await service.send(request), await service.send(request)];
    expect(answers.map((answer) => answer.body.chamberId)).toEqual([1, 1]);
    expect(await service.must('GET', '/chambers')).toHaveLength(1);
  });
});

describe('a rejected request', () => {
  it('a rejected request is decided again when it is repeated while fresh', async () => {
    const { service, ann: first, bob: second } = await withTwoAgents();
    const id = await openChamber(service, [first, second]);
    await enterPhase(service, id, 'DEBATE');
    const debate = service.prepare('POST', `/chambers/${id}/debate`, { by: second, body: { comment: 'hm' } });
    expect((await service.send(debate)).body.error).toBe('FORUM_ERR_TURN');
    await service.must('POST', `/chambers/${id}/pass`, { by: first });
    expect((await service.send(debate)).body).toEqual({ eventId: 5 });
  });
});

describe('evidence replayed from the public log', () => {
  async function replay(service: TestService, event: MoveEvent) {
    const { request } = event;
    if (request === null) throw new Error('the event has no evidence');
    const headers = {
      'content-type': 'application/json',
      'content-digest': request.contentDigest,
      'signature-input': request.signatureInput,
      signature: request.signature,
    };
    const path = new URL(request.targetUri).pathname;
    return service.send({ method: request.method, path, body: request.body || undefined, headers });
  }

  it('evidence replayed from the public log changes nothing, whichever line it comes from', async () => {
    const { service, id, debate } = await inDebate();
    await service.send(debate);
    const before = await service.lines(id);
    for (const event of await service.events(id)) expect((await replay(service, event as MoveEvent)).status).toBe(200);
    expect(await service.lines(id)).toEqual(before);
    expect(await service.must('GET', '/chambers')).toHaveLength(1);
  });

  it('evidence replayed from the public log is rejected by another service, where the agent is not registered and the address differs', async () => {
    const { service, id, debate } = await inDebate();
    await service.send(debate);
    const [event] = (await service.events(id)).slice(-1);
    const elsewhere = new TestService({ settings: { PUBLIC_URL: 'https://elsewhere.test' }, clock: service.clock });
    expect(await replay(elsewhere, event as MoveEvent)).toMatchObject({ status: 401 });
  });
});

describe('two identical moves', () => {
  it('two identical moves count twice if their signatures have different nonces', async () => {
    const { service, by, id } = await inDebate();
    const path = `/chambers/${id}/debate`;
    const eventIds = [];
    for (const _ of [1, 2]) eventIds.push((await service.must('POST', path, { by, body: { comment: 'hm' } })).eventId);
    expect(eventIds).toEqual([4, 5]);
  });
});

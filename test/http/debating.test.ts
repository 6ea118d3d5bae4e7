// Amendments, withdrawals, replies, stances and minMembers, over HTTP.
import { describe, expect, it } from 'vitest';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { refusal, TestService } from '../kit/test-service.ts';

interface Debate {
  readonly service: TestService;
  readonly chamberId: number;
  readonly ann: Signer;
  readonly bob: Signer;
  readonly move: (by: Signer, path: string, body?: object) => ReturnType<TestService['request']>;
}

/** Ann (in turn) has proposed ONE in event 4 and TWO in event 5, Bob SIX in event 7. */
async function inDebate(changes = {}): Promise<Debate> {
  const service = new TestService();
  const [ann, bob] = [await service.agent(), await service.agent()];
  const chamberId = await openChamber(service, [ann, bob], changes);
  const move: Debate['move'] = (by, path, body) =>
    service.request('POST', `/chambers/${chamberId}/${path}`, { by, body });
  await enterPhase(service, chamberId, 'PROPOSAL');
  await move(ann, 'propose', { name: 'One', ticker: 'ONE', description: 'first' });
  await move(ann, 'propose', { name: 'Two', ticker: 'TWO' });
  await move(ann, 'pass');
  await move(bob, 'propose', { name: 'Six', ticker: 'SIX' });
  await enterPhase(service, chamberId, 'DEBATE');
  return { service, chamberId, ann, bob, move };
}

const ideasOf = ({ service, chamberId }: Debate) => service.must('GET', `/chambers/${chamberId}/ideas`);
const todoOf = async ({ service }: Debate, by: Signer) => (await service.must('GET', '/me/todo', { by })).todo[0];

describe('an amendment', () => {
  it('an amendment is in every view, with its event', async () => {
    const debate = await inDebate();
    const { service, chamberId, ann, move } = debate;
    const { body } = await move(ann, 'amend', { ideaId: 'idea-1', name: 'One, better' });
    expect(body).toEqual({ eventId: 8, version: 2 });
    const amendedAt = toTimestamp(service.clock.read());
    const latest = { name: 'One, better', description: 'first', version: 2, withdrawn: false };
    const [idea] = await ideasOf(debate);
    const proposedAt = toTimestamp(service.clock.read() - HOUR);
    const versions = [
      { version: 1, eventId: 4, ts: proposedAt },
      { version: 2, eventId: 8, ts: amendedAt },
    ];
    expect(idea).toMatchObject({ ...latest, versions });
    expect(await service.must('GET', '/ideas/ONE')).toMatchObject(latest);
    const chamber = await service.must('GET', `/chambers/${chamberId}`);
    expect(chamber.ideas[0]).toEqual({
      ...{ ideaId: 'idea-1', ticker: 'ONE', name: 'One, better', creator: ann.did, version: 2, withdrawn: false },
    });
  });

  it('an amendment gets its first response when it is sent again', async () => {
    const { service, chamberId, ann } = await inDebate();
    const body = { ideaId: 'idea-1', name: 'Better' };
    const request = service.prepare('POST', `/chambers/${chamberId}/amend`, { by: ann, body });
    const first = await service.send(request);
    service.clock.advance(1_000);
    expect((await service.send(request)).body).toEqual(first.body);
    expect(await service.lines(chamberId)).toHaveLength(8);
  });

  it.each<[string, (debate: Debate) => Promise<unknown>, object, ReturnType<typeof refusal>]>([
    ['with an empty body', async () => {}, {}, refusal(400, 'FORUM_ERR_VALIDATION', 'ideaId: is required')],
    [
      'without a text',
      async () => {},
      { ideaId: 'idea-1' },
      refusal(400, 'FORUM_ERR_VALIDATION', 'body: needs a name or'),
    ],
    [
      'of a missing idea',
      async () => {},
      { ideaId: 'idea-4', name: 'N' },
      refusal(404, 'FORUM_ERR_NOT_FOUND', 'idea-4'),
    ],
    [
      "of Bob's idea",
      async () => {},
      { ideaId: 'idea-3', name: 'N' },
      refusal(403, 'FORUM_ERR_FORBIDDEN', 'proposer of idea-3'),
    ],
    [
      'without a change',
      async () => {},
      { ideaId: 'idea-1', name: 'One' },
      refusal(409, 'FORUM_ERR_CONFLICT', 'already has this text'),
    ],
    [
      'of a withdrawn idea',
      ({ move, ann }) => move(ann, 'withdraw', { ideaId: 'idea-1' }),
      { ideaId: 'idea-1', name: 'N' },
      refusal(409, 'FORUM_ERR_CONFLICT', 'was withdrawn'),
    ],
    [
      'beyond 16 versions',
      async ({ move, ann }) => {
        for (let version = 2; version <= 16; version++)
          await move(ann, 'amend', { ideaId: 'idea-1', name: `V${version}` });
      },
      { ideaId: 'idea-1', name: 'N' },
      refusal(409, 'FORUM_ERR_CONFLICT', 'already has 16 versions'),
    ],
    [
      'out of turn',
      ({ move, ann }) => move(ann, 'pass'),
      { ideaId: 'idea-1', name: 'N' },
      refusal(403, 'FORUM_ERR_TURN'),
    ],
    [
      'in another phase',
      ({ service, chamberId }) => enterPhase(service, chamberId, 'ALLOCATE_COMMIT'),
      { ideaId: 'idea-1', name: 'N' },
      refusal(403, 'FORUM_ERR_PHASE', 'expected phase DEBATE'),
    ],
  ])('an amendment is rejected %s, and writes nothing', async (_title, prepare, body, expected) => {
    const debate = await inDebate();
    await prepare(debate);
    const before = await debate.service.lines(debate.chamberId);
    expect(await debate.move(debate.ann, 'amend', body)).toMatchObject(expected);
    expect(await debate.service.lines(debate.chamberId)).toEqual(before);
  });
});

describe('a withdrawal', () => {
  it('a withdrawal is final, and shown in every list', async () => {
    const debate = await inDebate();
    const { service, chamberId, ann, move } = debate;
    const { body } = await move(ann, 'withdraw', { ideaId: 'idea-1' });
    expect(body).toEqual({ eventId: 8 });
    expect(await ideasOf(debate)).toMatchObject([{ withdrawn: true }, { withdrawn: false }, { withdrawn: false }]);
    expect(await service.must('GET', '/ideas/ONE')).toMatchObject({ withdrawn: true });
    expect((await service.must('GET', `/chambers/${chamberId}`)).ideas[0]).toMatchObject({ withdrawn: true });
    expect(await move(ann, 'withdraw', { ideaId: 'idea-1' })).toMatchObject(refusal(409, 'FORUM_ERR_CONFLICT'));
  });

  it('a withdrawal does not free the ticker', async () => {
    const service = new TestService();
    const by = await service.agent();
    const chamberId = await openChamber(service, [by]);
    await enterPhase(service, chamberId, 'PROPOSAL');
    const propose = () =>
      service.request('POST', `/chambers/${chamberId}/propose`, { by, body: { name: 'One', ticker: 'ONE' } });
    await propose();
    await service.must('POST', `/chambers/${chamberId}/withdraw`, { by, body: { ideaId: 'idea-1' } });
    service.clock.advance(1_000);
    expect(await propose()).toMatchObject(refusal(409, 'FORUM_ERR_CONFLICT', 'ticker: ONE'));
  });

  it.each<[string, object, ReturnType<typeof refusal>]>([
    ['of a missing idea', { ideaId: 'idea-4' }, refusal(404, 'FORUM_ERR_NOT_FOUND')],
    ["of Bob's idea", { ideaId: 'idea-3' }, refusal(403, 'FORUM_ERR_FORBIDDEN')],
    ['without an idea', {}, refusal(400, 'FORUM_ERR_VALIDATION', 'ideaId: is required')],
  ])('a withdrawal is rejected %s', async (_title, body, expected) => {
    const { ann, move } = await inDebate();
    expect(await move(ann, 'withdraw', body)).toMatchObject(expected);
  });

  it('a withdrawal prevents reveals from naming the idea, and the idea from graduating', async () => {
    const { service, chamberId, ann, bob, move } = await inDebate();
    await move(ann, 'withdraw', { ideaId: 'idea-1' });
    await enterPhase(service, chamberId, 'ALLOCATE_COMMIT');
    const named = allocationOf(chamberId, ann, { 'idea-1': 0, 'idea-3': 9_000 });
    const other = allocationOf(chamberId, bob, { 'idea-3': 6_000 });
    await move(ann, 'allocate/commit', named.commit);
    await move(bob, 'allocate/commit', other.commit);
    await enterPhase(service, chamberId, 'ALLOCATE_REVEAL');
    const detail = 'allocations[0].ideaId: "idea-1" (ONE) was withdrawn';
    expect(await move(ann, 'allocate/reveal', named.reveal)).toMatchObject(
      refusal(400, 'FORUM_ERR_VALIDATION', detail),
    );
    expect(await move(bob, 'allocate/reveal', other.reveal)).toMatchObject({ status: 200 });
    await enterPhase(service, chamberId, 'COMMITTED');
    const fact = { ideaId: 'idea-3', tokenAddress: `0x${'88'.repeat(20)}`, txHash: `0x${'77'.repeat(32)}` as const };
    const graduatedAt = toTimestamp(service.clock.read());
    await service.forum.submit({
      operation: 'record',
      chamberId,
      fact: { type: 'idea.deployed', payload: { ...fact, graduatedAt } },
    });
    const outcome = await service.must('GET', `/chambers/${chamberId}/outcome`);
    expect(outcome).toMatchObject({ quorate: null, minBackersForGraduation: 1 });
    expect(outcome.ideas).toMatchObject([
      { withdrawn: true, graduated: false, shareBps: 0, backersMissing: 1 },
      { withdrawn: false, graduated: false, version: 1 },
      { graduated: true, shareBps: 10_000, backersMissing: 0 },
    ]);
  });
});

describe('a comment', () => {
  it.each([4, 8, 9])('a comment may reply to event %i, a proposal, comment or amendment', async (replyTo) => {
    const { service, chamberId, ann, move } = await inDebate();
    await move(ann, 'debate', { comment: 'hm' });
    await move(ann, 'amend', { ideaId: 'idea-1', name: 'Better' });
    expect(await move(ann, 'debate', { comment: 'so', replyTo })).toMatchObject({ status: 200, body: { eventId: 10 } });
    expect(JSON.parse((await service.lines(chamberId)).at(-1) ?? '').payload).toMatchObject({ replyTo });
  });

  it.each([1, 3, 6, 8, 9, 1_000_000])(
    'a comment is rejected as a reply to event %i, which is not a proposal, comment or amendment',
    async (replyTo) => {
      const { ann, move } = await inDebate();
      await move(ann, 'withdraw', { ideaId: 'idea-2' });
      expect(await move(ann, 'debate', { comment: 'so', replyTo })).toMatchObject(
        refusal(404, 'FORUM_ERR_NOT_FOUND', `event ${replyTo}`),
      );
    },
  );

  it('a comment out of turn is rejected before the event that it replies to is checked', async () => {
    const { bob, move } = await inDebate();
    expect(await move(bob, 'debate', { comment: 'so', replyTo: 1 })).toMatchObject(refusal(403, 'FORUM_ERR_TURN'));
  });

  it('a comment in a missing chamber gets 404, whatever it replies to', async () => {
    const { service, ann } = await inDebate();
    const call = { by: ann, body: { comment: 'so', replyTo: 4 } };
    expect(await service.request('POST', '/chambers/99/debate', call)).toMatchObject(
      refusal(404, 'FORUM_ERR_NOT_FOUND', 'chamber not found'),
    );
  });

  it('a comment counts in the straw poll of its idea', async () => {
    const debate = await inDebate();
    const { ann, bob, move } = debate;
    const stance = (by: Signer, stance: string) => move(by, 'debate', { ideaId: 'idea-1', comment: 'hm', stance });
    await stance(ann, 'against');
    await stance(ann, 'for');
    await move(ann, 'pass');
    await stance(bob, 'undecided');
    const [idea] = await ideasOf(debate);
    expect(idea.stances).toEqual({ for: 1, against: 0, undecided: 1, outdated: 0 });
    await move(bob, 'pass');
    await move(ann, 'amend', { ideaId: 'idea-1', description: 'second' });
    expect((await ideasOf(debate))[0].stances).toEqual({ for: 0, against: 0, undecided: 0, outdated: 2 });
    expect((await debate.service.must('GET', '/ideas/one')).stances).toMatchObject({ outdated: 2 });
  });

  it.each<[object, ReturnType<typeof refusal>]>([
    [{ stance: 'for' }, refusal(400, 'FORUM_ERR_VALIDATION', 'stance: needs an ideaId')],
    [{ stance: 'for', ideaId: null }, refusal(400, 'FORUM_ERR_VALIDATION', 'stance: needs an ideaId')],
    [{ stance: 'maybe', ideaId: 'idea-1' }, refusal(400, 'FORUM_ERR_VALIDATION', 'stance: must be one of')],
    [{ replyTo: 0 }, refusal(400, 'FORUM_ERR_VALIDATION', 'replyTo: ')],
    [{ replyTo: '4' }, refusal(400, 'FORUM_ERR_VALIDATION', 'replyTo: ')],
    [{ stance: 'for', ideaId: 'idea-2' }, refusal(409, 'FORUM_ERR_CONFLICT', 'idea-2 (TWO) was withdrawn')],
  ])('a comment with %j is rejected', async (options, expected) => {
    const { ann, move } = await inDebate();
    await move(ann, 'withdraw', { ideaId: 'idea-2' });
    expect(await move(ann, 'debate', { comment: 'hm', ...options })).toMatchObject(expected);
  });
});

describe('GET /me/todo', () => {
  it('GET /me/todo offers amend and withdraw only to an agent with an idea that is not withdrawn', async () => {
    const debate = await inDebate();
    const { ann, bob, move } = debate;
    expect((await todoOf(debate, ann)).may).toEqual(['debate', 'amend', 'withdraw']);
    expect((await todoOf(debate, bob)).may).toEqual([]);
    await move(ann, 'withdraw', { ideaId: 'idea-1' });
    expect((await todoOf(debate, ann)).may).toEqual(['debate', 'amend', 'withdraw']);
    await move(ann, 'withdraw', { ideaId: 'idea-2' });
    expect((await todoOf(debate, ann)).may).toEqual(['debate']);
  });

  it('GET /me/todo offers withdraw in PROPOSAL after a proposal, while the turn has a move left', async () => {
    const service = new TestService();
    const by = await service.agent();
    const chamberId = await openChamber(service, [by], { movesPerTurn: 2 });
    await enterPhase(service, chamberId, 'PROPOSAL');
    const may = async () => (await service.must('GET', '/me/todo', { by })).todo[0].may;
    expect(await may()).toEqual(['propose']);
    await service.must('POST', `/chambers/${chamberId}/propose`, { by, body: { name: 'One', ticker: 'ONE' } });
    expect(await may()).toEqual(['propose', 'withdraw']);
    await service.must('POST', `/chambers/${chamberId}/withdraw`, { by, body: { ideaId: 'idea-1' } });
    expect(await may()).toEqual([]);
  });

  it('GET /me/todo is not misled by a text that imitates a withdrawn idea', async () => {
    const service = new TestService();
    const by = await service.agent();
    const chamberId = await openChamber(service, [by]);
    await enterPhase(service, chamberId, 'PROPOSAL');
    const body = { name: '","withdrawn":true', ticker: 'ONE', description: ',"withdrawn":true' };
    await service.must('POST', `/chambers/${chamberId}/propose`, { by, body });
    expect((await service.must('GET', '/me/todo', { by })).todo[0].may).toEqual(['propose', 'withdraw']);
  });
});

describe('a chamber with minMembers', () => {
  async function lobby(members: number, changes = {}) {
    const service = new TestService();
    const agents = await Promise.all(Array.from({ length: members }, () => service.agent()));
    const chamberId = await openChamber(service, agents, { minMembers: 2, ...changes });
    return { service, agents, chamberId, view: () => service.must('GET', `/chambers/${chamberId}`) };
  }

  it.each([
    ['without rounds', {}],
    ['with rounds', { turnSeconds: 60, rounds: { proposal: 1, debate: 1 } }],
  ])('a chamber with minMembers is over at the end of LOBBY with too few members, %s', async (_title, pace) => {
    const { service, agents, chamberId, view } = await lobby(1, pace);
    const [by] = agents;
    const { deadlines, ...before } = await view();
    expect(before).toMatchObject({ phase: 'LOBBY', minMembers: 2, quorate: null });
    expect(before.ends.reveal).toBe(deadlines.allocateRevealDeadline);
    await enterPhase(service, chamberId, 'PROPOSAL');
    const after = await view();
    expect(after).toMatchObject({ phase: 'ALLOCATE_REVEAL', quorate: false, commitStatus: 'pending' });
    expect(new Set(Object.values(after.ends))).toEqual(new Set([deadlines.lobbyDeadline]));
    const listed = async (phase: string) =>
      (await service.must('GET', `/chambers?phase=${phase}`)).map((each: { chamberId: number }) => each.chamberId);
    expect(await listed('PROPOSAL')).toEqual([]);
    expect(await listed('ALLOCATE_REVEAL')).toEqual([chamberId]);
    expect((await service.must('GET', '/me/todo', { by })).todo).toMatchObject([
      { must: 'wait', may: [], why: expect.stringContaining('did not go ahead') },
    ]);
    const body = { name: 'One', ticker: 'ONE' };
    expect(await service.request('POST', `/chambers/${chamberId}/propose`, { by, body })).toMatchObject(
      refusal(403, 'FORUM_ERR_PHASE', 'did not go ahead: 1 of at least 2 members'),
    );
    expect(await service.forum.store.lists.listUnsettled(service.clock.read(), 10)).toEqual([chamberId]);
    await enterPhase(service, chamberId, 'COMMITTED');
    expect(await service.must('GET', `/chambers/${chamberId}/outcome`)).toMatchObject({ quorate: false, ideas: [] });
  });

  it('a chamber with minMembers continues like any other once minMembers agents have joined', async () => {
    const { service, chamberId, view } = await lobby(2);
    await enterPhase(service, chamberId, 'PROPOSAL');
    expect(await view()).toMatchObject({ phase: 'PROPOSAL', quorate: true });
  });

  it('a chamber with minMembers can be started only with minMembers members', async () => {
    const pace = { turnSeconds: 60, rounds: { proposal: 1, debate: 1 } };
    const { service, agents, chamberId } = await lobby(1, pace);
    const [by] = agents;
    expect((await service.must('GET', '/me/todo', { by })).todo[0].may).toEqual([]);
    expect(await service.request('POST', `/chambers/${chamberId}/start`, { by })).toMatchObject(
      refusal(409, 'FORUM_ERR_CONFLICT', 'has 1 of at least 2 members'),
    );
    await service.must('POST', `/chambers/${chamberId}/join`, { by: await service.agent() });
    expect((await service.must('GET', '/me/todo', { by })).todo[0].may).toEqual(['start']);
    service.clock.advance(1_000);
    expect(await service.request('POST', `/chambers/${chamberId}/start`, { by })).toMatchObject({ status: 200 });
  });

  it.each([
    [{ minMembers: 3, maxMembers: 2 }, 'minMembers: must not be more than maxMembers, which is 2'],
    [{ minMembers: 0 }, 'minMembers: must be an integer from 1 to 256'],
    [{ minMembers: 257 }, 'minMembers: must be an integer from 1 to 256'],
  ])('a chamber with minMembers is not created with %j', async (numbers, detail) => {
    const service = new TestService();
    const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), ...numbers };
    const answer = await service.request('POST', '/chambers', { by: await service.agent(), body });
    expect(answer).toMatchObject(refusal(400, 'FORUM_ERR_VALIDATION', detail));
  });

  it('a chamber with minMembers is created with a warning if its list has fewer agents', async () => {
    const service = new TestService();
    const by = await service.agent();
    const create = (minMembers: number) => {
      const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), minMembers, admission: { dids: [by.did] } };
      return service.must('POST', '/chambers', { by, body });
    };
    expect((await create(2)).warnings).toEqual([
      expect.stringContaining('needs 2 members, but admission.dids lists 1'),
    ]);
    expect(await create(1)).not.toHaveProperty('warnings');
  });
});

it.each([
  ['withdraw', { ideaId: 'idea-1' }],
  ['amend', { ideaId: 'idea-1', name: 'Better' }],
])('%s is accepted up to the last millisecond of DEBATE, and rejected one millisecond later', async (path, body) => {
  for (const [at, expected] of [
    [-1, { status: 200 }],
    [0, refusal(403, 'FORUM_ERR_PHASE')],
  ] as const) {
    const service = new TestService();
    const by = await service.agent();
    const id = await openChamber(service, [by]);
    await enterPhase(service, id, 'PROPOSAL');
    await service.must('POST', `/chambers/${id}/propose`, { by, body: { name: 'One', ticker: 'ONE' } });
    service.clock.advance(2 * HOUR + at);
    expect(await service.request('POST', `/chambers/${id}/${path}`, { by, body })).toMatchObject(expected);
  }
});

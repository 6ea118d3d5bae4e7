// Chambers that end phases as soon as nothing more can happen in them, over HTTP, with deadlines an hour apart.
import { describe, expect, it } from 'vitest';
import { allocationOf, deadlinesFrom, openChamber, recordCommit } from '../kit/chambers.ts';
import { START } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { refusal, TestService, withAgent } from '../kit/test-service.ts';

const PACE = { turnSeconds: 60, rounds: { proposal: 1, debate: 1 } };
const iso = (millis: number) => new Date(millis).toISOString();

async function stage(changes: Readonly<Record<string, unknown>> = {}, count = 2, service = new TestService()) {
  const members: Signer[] = [];
  for (let index = 0; index < count; index++) members.push(await service.agent());
  const id = await openChamber(service, members, { ...PACE, ...changes });
  const act = (path: string, by: Signer, body: unknown = {}) =>
    service.request('POST', `/chambers/${id}/${path}`, { by, body });
  const view = () => service.must('GET', `/chambers/${id}`);
  return { service, id, members: members as [Signer, Signer, ...Signer[]], act, view };
}

const error = (code: string) => expect.objectContaining({ error: `FORUM_ERR_${code}` });

describe('a chamber with rounds', () => {
  it('a chamber with rounds ends each phase with the event that completes it', async () => {
    const { service, id, members, act, view } = await stage();
    const [ann, bob] = members;
    const latest = deadlinesFrom(START);
    expect(await view()).toMatchObject({
      phase: 'LOBBY',
      deadlines: latest,
      rounds: PACE.rounds,
      movesPerTurn: null,
      ends: { lobby: latest.lobbyDeadline, proposal: latest.proposalDeadline, reveal: latest.allocateRevealDeadline },
    });
    service.clock.advance(5_000);
    expect(await act('start', ann)).toMatchObject({ status: 200, body: { eventId: 4 } });
    expect(await view()).toMatchObject({
      phase: 'PROPOSAL',
      currentTurnAgent: ann.did,
      phaseEndsAt: iso(START + 125_000),
      turnEndsAt: iso(START + 65_000),
      ends: { lobby: iso(START + 5_000), proposal: iso(START + 125_000), debate: iso(START + 245_000) },
    });
    await act('propose', ann, { name: 'Idea', ticker: 'ABC' });
    expect((await act('pass', ann)).body).toMatchObject({ nextTurnAgent: bob.did });
    service.clock.advance(1_000);
    expect((await act('pass', bob)).body).toMatchObject({ nextTurnAgent: ann.did });
    expect(await view()).toMatchObject({
      phase: 'DEBATE',
      currentTurnAgent: ann.did,
      ends: { proposal: iso(START + 6_000) },
    });
    // One silent round.
    await act('pass', ann);
    await act('pass', bob);
    expect(await view()).toMatchObject({
      phase: 'ALLOCATE_COMMIT',
      currentTurnAgent: null,
      ends: {
        debate: iso(START + 6_000),
        commit: latest.allocateCommitDeadline,
        reveal: latest.allocateRevealDeadline,
      },
    });
    expect(
      (await service.must('GET', '/chambers?phase=ALLOCATE_COMMIT')).map(
        (item: { chamberId: number }) => item.chamberId,
      ),
    ).toEqual([id]);
    for (const by of members)
      expect((await act('allocate/commit', by, allocationOf(id, by, { 'idea-1': 10 }).commit)).status).toBe(200);
    expect(await view()).toMatchObject({ phase: 'ALLOCATE_REVEAL', commitStatus: 'open' });
    for (const by of members)
      expect((await act('allocate/reveal', by, allocationOf(id, by, { 'idea-1': 10 }).reveal)).status).toBe(200);
    expect(await view()).toMatchObject({
      phase: 'ALLOCATE_REVEAL',
      commitStatus: 'pending',
      ends: { reveal: iso(START + 6_000) },
    });
    expect(await service.forum.store.lists.listUnsettled(service.clock.read(), 9)).toEqual([id]);
    expect(await act('allocate/reveal', ann, allocationOf(id, ann).reveal)).toMatchObject({
      status: 403,
      body: error('PHASE'),
    });
    await recordCommit(service.forum, id);
    expect(await view()).toMatchObject({ phase: 'COMMITTED' });
  });

  it('a chamber with rounds is listed with the current end of its phase if the query has ends=1', async () => {
    const { service, id, members, act } = await stage();
    const listed = (query: string) => service.must('GET', `/chambers${query}`);
    const latest = deadlinesFrom(START);
    expect(await listed('?ends=1')).toEqual([
      {
        ...{ chamberId: id, phase: 'LOBBY', name: 'Test', deadlines: latest, memberCount: 2 },
        phaseEndsAt: latest.lobbyDeadline,
      },
    ]);
    await act('start', members[0]);
    expect(await listed('?ends=1')).toMatchObject([{ phase: 'PROPOSAL', phaseEndsAt: iso(START + 120_000) }]);
    const page = await service.app.request('/', { headers: { accept: 'text/html' } }, {});
    expect(await page.text()).toContain(iso(START + 120_000));
    expect(Object.keys((await listed(''))[0])).not.toContain('phaseEndsAt');
    expect(await service.request('GET', '/chambers?ends=0')).toMatchObject({ status: 400, body: error('VALIDATION') });
  });

  it('a chamber with rounds leaves LOBBY when it is full', async () => {
    const { members, act, view } = await stage({ maxMembers: 2 });
    expect(await view()).toMatchObject({
      phase: 'PROPOSAL',
      currentTurnAgent: members[0].did,
      ends: { lobby: iso(START) },
    });
    expect((await act('start', members[0])).body).toEqual(error('PHASE'));
  });

  it('a chamber with rounds ends the phase when the last turn expires', async () => {
    const { service, id, members, act, view } = await stage();
    await act('start', members[0]);
    service.clock.advance(120_000 - 1);
    expect(await view()).toMatchObject({ phase: 'PROPOSAL', currentTurnAgent: members[1].did });
    service.clock.advance(1);
    expect(await view()).toMatchObject({ phase: 'DEBATE', currentTurnAgent: members[0].did });
    const { todo } = await service.must('GET', '/me/todo', { by: members[0] });
    expect(todo).toMatchObject([{ chamberId: id, must: 'pass', may: ['debate'], phaseEndsAt: iso(START + 240_000) }]);
  });

  it('a chamber with rounds can be started only by its creator, once it has a member', async () => {
    const { service, members, act } = await stage();
    expect(await act('start', members[1])).toMatchObject({ status: 403, body: error('FORBIDDEN') });
    const body = { name: 'Empty', ...deadlinesFrom(START), ...PACE };
    const { chamberId } = await service.must('POST', '/chambers', { by: members[1], body });
    const empty = await service.request('POST', `/chambers/${chamberId}/start`, { by: members[1] });
    expect(empty).toMatchObject({ status: 409, body: error('CONFLICT') });
    const plain = await openChamber(service, members);
    const refused = await service.request('POST', `/chambers/${plain}/start`, { by: members[0] });
    expect(refused).toMatchObject({ status: 400, body: error('VALIDATION') });
  });

  it('a chamber with rounds offers start to its creator', async () => {
    const { service, members } = await stage();
    expect((await service.must('GET', '/me/todo', { by: members[0] })).todo).toMatchObject([
      { must: 'wait', may: ['start'] },
    ]);
    expect((await service.must('GET', '/me/todo', { by: members[1] })).todo).toMatchObject([{ must: 'wait', may: [] }]);
  });

  it('a chamber with rounds has the same state after a restart', async () => {
    const path = temporaryDatabase();
    const { service, id, members, act, view } = await stage({}, 2, new TestService({ path }));
    await act('start', members[0]);
    await act('pass', members[0]);
    const before = await view();
    await service.close();
    const restarted = new TestService({ path, clock: service.clock });
    expect(await restarted.must('GET', `/chambers/${id}`)).toEqual(before);
  });
});

describe('movesPerTurn', () => {
  it('movesPerTurn limits the moves of a turn, even in a chamber without rounds', async () => {
    const { service, members, act } = await stage({ rounds: undefined, movesPerTurn: 2 });
    const [ann, bob] = members;
    service.clock.set(Date.parse(deadlinesFrom(START).lobbyDeadline));
    for (const ticker of ['A', 'B']) expect((await act('propose', ann, { name: 'Idea', ticker })).status).toBe(200);
    expect(await act('propose', ann, { name: 'Idea', ticker: 'C' })).toMatchObject(
      refusal(409, 'FORUM_ERR_CONFLICT', 'pass'),
    );
    expect((await service.must('GET', '/me/todo', { by: ann })).todo).toMatchObject([{ must: 'pass', may: [] }]);
    await act('pass', ann);
    expect((await service.must('GET', '/me/todo', { by: bob })).todo).toMatchObject([
      { must: 'pass', may: ['propose'] },
    ]);
    expect((await act('propose', bob, { name: 'Idea', ticker: 'C' })).status).toBe(200);
  });
});

describe('the creation of a chamber', () => {
  const create = async (changes: object) => {
    const { service, by } = await withAgent();
    return service.request('POST', '/chambers', { by, body: { name: 'Test', ...deadlinesFrom(START), ...changes } });
  };

  it.each([
    [{ rounds: { proposal: 1 }, turnSeconds: 60 }, 'rounds.debate'],
    [{ rounds: { proposal: 0, debate: 1 }, turnSeconds: 60 }, 'rounds.proposal'],
    [{ rounds: { proposal: 1.5, debate: 1 }, turnSeconds: 60 }, 'rounds.proposal'],
    [{ rounds: { proposal: 1, debate: 101 }, turnSeconds: 60 }, 'rounds.debate'],
    [{ rounds: { proposal: 1, debate: 1, reveal: 1 }, turnSeconds: 60 }, 'rounds'],
    [{ rounds: null, turnSeconds: 60 }, 'rounds'],
    [{ rounds: { proposal: 1, debate: 1 } }, 'rounds: needs turnSeconds'],
    [{ movesPerTurn: 0 }, 'movesPerTurn'],
    [{ movesPerTurn: 101 }, 'movesPerTurn'],
  ])('the creation of a chamber rejects %j', async (changes, detail) => {
    const body = { error: 'FORUM_ERR_VALIDATION', detail: expect.stringContaining(detail) };
    expect(await create(changes)).toMatchObject({ status: 400, body });
  });

  it('the creation of a chamber warns about turns that do not fit into a phase', async () => {
    const { status, body } = await create({ turnSeconds: 1_801, maxMembers: 2 });
    expect({ status, body }).toMatchObject({ status: 200, body: { chamberId: 1, phase: 'LOBBY' } });
    expect(body.warnings).toHaveLength(2);
    expect(await create({ turnSeconds: 1_800, maxMembers: 2 })).toMatchObject({
      body: expect.not.objectContaining({ warnings: expect.anything() }),
    });
  });
});

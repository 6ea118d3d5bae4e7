// Views of chambers, ideas and allocations (specification, Endpoints).
import { describe, expect, it } from 'vitest';
import { PHASES, toTimestamp } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, enterPhase, openChamber, SALT } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { refusal, TestService, withAgent, withTwoAgents } from '../kit/test-service.ts';

describe('POST /chambers', () => {
  it('POST /chambers opens a chamber in LOBBY; ids count from 1', async () => {
    const { service, by } = await withAgent();
    const body = { name: 'First', ...deadlinesFrom(START) };
    expect(await service.must('POST', '/chambers', { by, body })).toEqual({ chamberId: 1, phase: 'LOBBY' });
    expect(await service.must('POST', '/chambers', { by, body })).toEqual({ chamberId: 2, phase: 'LOBBY' });
  });

  it.each([
    ['a lobby deadline that has passed', [0, 1, 2, 3, 4], 'lobbyDeadline', toTimestamp(START)],
    ['deadlines out of order', [1, 2, 3, 5, 4], 'allocateRevealDeadline', undefined],
  ])('POST /chambers rejects %s', async (_what, hours, field, serviceTime) => {
    const service = new TestService();
    const body = { name: 'Test', ...deadlinesFrom(START, hours) };
    const refused = await service.request('POST', '/chambers', { by: await service.agent(), body });
    const detail = expect.stringMatching(`^${field}: `);
    expect(refused.status).toBe(400);
    expect(refused.body).toEqual({ error: 'FORUM_ERR_VALIDATION', detail, ...(serviceTime && { serviceTime }) });
  });
});

describe('GET /chambers/:id', () => {
  it('GET /chambers/:id shows the whole chamber', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const id = await openChamber(service, [ann, bob], { minBackersForGraduation: 2, turnSeconds: 60 });
    await enterPhase(service, id, 'PROPOSAL');
    await service.must('POST', `/chambers/${id}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ABC' } });
    service.clock.advance(60_000);
    expect(await service.must('GET', `/chambers/${id}`)).toEqual({
      chamberId: id,
      phase: 'PROPOSAL',
      name: 'Test',
      deadlines: deadlinesFrom(START),
      minBackersForGraduation: 2,
      turnSeconds: 60,
      topic: null,
      maxMembers: null,
      minMembers: null,
      quorate: null,
      rounds: null,
      movesPerTurn: null,
      admission: null,
      ends: {
        lobby: deadlinesFrom(START).lobbyDeadline,
        proposal: deadlinesFrom(START).proposalDeadline,
        debate: deadlinesFrom(START).debateDeadline,
        commit: deadlinesFrom(START).allocateCommitDeadline,
        reveal: deadlinesFrom(START).allocateRevealDeadline,
      },
      members: [ann.did, bob.did],
      currentTurnAgent: bob.did,
      now: toTimestamp(service.clock.read()),
      phaseEndsAt: deadlinesFrom(START).proposalDeadline,
      turnEndsAt: toTimestamp(service.clock.read() + 60_000),
      ideas: [{ ideaId: 'idea-1', ticker: 'ABC', name: 'Idea', creator: ann.did, version: 1, withdrawn: false }],
      merkleRoot: null,
      committedAt: null,
      committedTxHash: null,
      commitStatus: 'open',
    });
  });
});

describe('GET /chambers', () => {
  it('GET /chambers shows items newest first', async () => {
    const { service, by: ann } = await withAgent();
    await openChamber(service, [ann]);
    await openChamber(service, [ann, await service.agent()]);
    const deadlines = deadlinesFrom(START);
    const item = { phase: 'LOBBY', name: 'Test', deadlines };
    expect(await service.must('GET', '/chambers')).toEqual([
      { chamberId: 2, ...item, memberCount: 2 },
      { chamberId: 1, ...item, memberCount: 1 },
    ]);
  });

  it('GET /chambers returns 50 items without a limit, and pages by before', async () => {
    const { service, by } = await withAgent();
    const body = { name: 'Test', ...deadlinesFrom(START) };
    for (let id = 1; id <= 53; id++) await service.must('POST', '/chambers', { by, body });
    const ids = async (query: string) =>
      (await service.must('GET', `/chambers${query}`)).map((item: { chamberId: number }) => item.chamberId);
    expect(await ids('')).toHaveLength(50);
    expect(await ids('?limit=200')).toHaveLength(53);
    expect(await ids('?limit=2')).toEqual([53, 52]);
    expect(await ids('?limit=2&before=52')).toEqual([51, 50]);
    expect(await ids('?before=3')).toEqual([2, 1]);
    expect(await ids('?before=1')).toEqual([]);
  });

  it('GET /chambers filters by the current phase', async () => {
    const service = new TestService();
    const first = await openChamber(service, []);
    service.clock.advance(HOUR / 2);
    const second = await openChamber(service, []);
    const ids = async (phase: string) =>
      (await service.must('GET', `/chambers?phase=${phase}`)).map((item: { chamberId: number }) => item.chamberId);
    const nowhere = Object.fromEntries(PHASES.map((phase) => [phase, []]));
    for (const phase of PHASES.slice(0, 5)) {
      const found = Object.fromEntries(await Promise.all(PHASES.map(async (other) => [other, await ids(other)])));
      expect(found).toEqual({ ...nowhere, [phase]: [second, first] });
      service.clock.advance(HOUR);
    }
    await enterPhase(service, first, 'COMMITTED');
    expect([await ids('ALLOCATE_REVEAL'), await ids('COMMITTED')]).toEqual([[second], [first]]);
  });

  it.each([
    ['/chambers?member=x', 'member: must be a did:key'],
    ['/chambers?name=x', 'name: unknown query parameter; known: phase, member, limit, before, ends'],
    ['/chambers?limit=1&limit=2', 'limit: must not be given twice'],
    ['/ideas?phase=LOBBY', 'phase: unknown'],
    ['/ideas/ABC?chamberid=1', 'chamberid: unknown query parameter; did you mean "chamberId"?'],
    ['/chambers?phsae=LOBBY', 'phsae: unknown query parameter; did you mean "phase"?'],
  ])('GET /chambers rejects %s', async (path, detail) => {
    expect(await new TestService().request('GET', path)).toMatchObject(refusal(400, 'FORUM_ERR_VALIDATION', detail));
  });

  it.each(['/health?x=1', '/?x=1&x=2', '/docs?theme=dark'])('%s is served, and its query is ignored', async (path) => {
    const service = new TestService();
    expect((await service.app.request(path, {}, {})).status).toBe(200);
  });

  it.each(['?limit=0', '?limit=201', '?limit=ten', '?limit=', '?phase=lobby', '?phase=', '?before=-1', '?before=x'])(
    'GET /chambers rejects %s and names the parameter',
    async (query) => {
      const name = query.slice(1, query.indexOf('='));
      expect(await new TestService().request('GET', `/chambers${query}`)).toMatchObject({
        status: 400,
        body: { error: 'FORUM_ERR_VALIDATION', detail: expect.stringMatching(`^${name}: `) },
      });
    },
  );
});

describe('ideas', () => {
  /** Opens concurrent chambers with one idea each. */
  async function proposeIn(service: TestService, by: Signer, tickers: readonly string[]): Promise<readonly number[]> {
    const ids: number[] = [];
    for (const _ of tickers) ids.push(await openChamber(service, [by]));
    await enterPhase(service, ids[0] ?? 0, 'PROPOSAL');
    for (const [index, ticker] of tickers.entries()) {
      const body = { name: `${ticker} of ${ids[index]}`, ticker, description: 'd' };
      await service.must('POST', `/chambers/${ids[index]}/propose`, { by, body });
    }
    return ids;
  }

  /** Gives each idea a backer, so that it graduates. */
  async function back(service: TestService, by: Signer, ids: readonly number[]): Promise<void> {
    const phases = { commit: 'ALLOCATE_COMMIT', reveal: 'ALLOCATE_REVEAL' } as const;
    for (const operation of ['commit', 'reveal'] as const) {
      await enterPhase(service, ids[0] ?? 0, phases[operation]);
      for (const id of ids) {
        const body = allocationOf(id, by, { 'idea-1': 10_000 })[operation];
        await service.must('POST', `/chambers/${id}/allocate/${operation}`, { by, body });
      }
    }
  }

  /** Records a deployment as the relayer does, after the end of the chamber. */
  async function deploy(service: TestService, id: number, graduatedAt: string): Promise<void> {
    await enterPhase(service, id, 'COMMITTED');
    const tokenAddress = `0x${`0${id}`.repeat(20)}`;
    const payload = { ideaId: 'idea-1', tokenAddress, txHash: '0x00', graduatedAt } as const;
    await service.forum.submit({ operation: 'record', chamberId: id, fact: { type: 'idea.deployed', payload } });
  }

  it('ideas are listed in their chamber at once, and among all ideas once they have a token', async () => {
    const { service, by } = await withAgent();
    const [id = 0] = await proposeIn(service, by, ['Abc']);
    const idea = {
      ideaId: 'idea-1',
      ticker: 'Abc',
      name: 'Abc of 1',
      description: 'd',
      creatorDid: by.did,
      tokenAddress: null,
      chamberId: id,
      graduatedAt: null,
      slot: 1,
      backers: 0,
      totalBps: 0,
      deployStatus: 'none',
      deployReason: null,
      version: 1,
      withdrawn: false,
      stances: { for: 0, against: 0, undecided: 0, outdated: 0 },
    };
    const versions = [{ version: 1, eventId: 3, ts: expect.any(String) }];
    expect(await service.must('GET', `/chambers/${id}/ideas`)).toEqual([{ ...idea, versions }]);
    expect(await service.must('GET', '/ideas/aBC')).toEqual(idea);
    expect(await service.must('GET', '/ideas')).toEqual([]);
    const graduatedAt = '2030-01-02T00:00:00.000Z';
    await back(service, by, [id]);
    await deploy(service, id, graduatedAt);
    const backed = { ...idea, backers: 1, totalBps: 10_000 };
    const graduate = { ...backed, tokenAddress: `0x${'01'.repeat(20)}`, graduatedAt, deployStatus: 'deployed' };
    expect(await service.must('GET', '/ideas')).toEqual([graduate]);
    expect(await service.must('GET', `/chambers/${id}/ideas`)).toEqual([{ ...graduate, versions }]);
  });

  it('ideas are found by ticker: a graduated idea first, then the newest, or the idea of a given chamber', async () => {
    const { service, by } = await withAgent();
    const [first = 0, second = 0, third = 0] = await proposeIn(service, by, ['ABC', 'abc', 'Abc']);
    const found = async (query = '') => (await service.must('GET', `/ideas/ABC${query}`)).chamberId;
    expect([await found(), await found(`?chamberId=${second}`)]).toEqual([third, second]);
    await back(service, by, [first, second]);
    await deploy(service, first, '2030-01-02T00:00:00.000Z');
    expect(await found()).toBe(first);
    await deploy(service, second, '2030-01-03T00:00:00.000Z');
    expect(await found()).toBe(second);
    const graduates = await service.must('GET', '/ideas');
    expect(graduates.map((idea: { chamberId: number }) => idea.chamberId)).toEqual([second, first]);
    expect(await service.must('GET', '/ideas?limit=1')).toHaveLength(1);
  });

  it('ideas are ordered by the time of their proposal, then of their graduation, regardless of chamber order', async () => {
    const { service, by } = await withAgent();
    const [older, newer] = [await openChamber(service, [by]), await openChamber(service, [by])];
    await enterPhase(service, older, 'PROPOSAL');
    for (const id of [newer, older]) {
      await service.must('POST', `/chambers/${id}/propose`, { by, body: { name: 'Idea', ticker: 'ABC' } });
      service.clock.advance(1_000);
    }
    const found = async () => (await service.must('GET', '/ideas/ABC')).chamberId;
    expect(await found()).toBe(older);
    await back(service, by, [older, newer]);
    await deploy(service, newer, '2030-01-03T00:00:00.000Z');
    await deploy(service, older, '2030-01-02T00:00:00.000Z');
    expect(await found()).toBe(newer);
  });

  it.each([
    ['/ideas/NOPE', 404],
    ['/ideas/ABC?chamberId=9', 404],
    ['/ideas/%F0%9F%98%80', 404],
    ['/ideas/ABC?chamberId=x', 400],
    ['/ideas?limit=0', 400],
  ])('ideas are rejected at %s with %i', async (path, status) => {
    const service = new TestService();
    await proposeIn(service, await service.agent(), ['ABC']);
    expect((await service.request('GET', path)).status).toBe(status);
  });
});

describe('allocations', () => {
  it('allocations are shown as committed, then as revealed, with the tally', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const id = await openChamber(service, [ann, bob]);
    await enterPhase(service, id, 'PROPOSAL');
    await service.must('POST', `/chambers/${id}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ABC' } });
    await enterPhase(service, id, 'ALLOCATE_COMMIT');
    const { commit, reveal } = allocationOf(id, bob, { 'idea-1': 2_500 });
    await service.must('POST', `/chambers/${id}/allocate/commit`, { by: bob, body: commit });
    const committed = [{ did: bob.did, ...commit }];
    const before = { chamberId: id, phase: 'ALLOCATE_COMMIT', committed, revealed: [], tally: [] };
    expect(await service.must('GET', `/chambers/${id}/allocations`)).toEqual(before);
    await enterPhase(service, id, 'ALLOCATE_REVEAL');
    const answer = await service.must('POST', `/chambers/${id}/allocate/reveal`, { by: bob, body: reveal });
    expect(answer).toEqual({ ok: true, verified: true });
    expect(await service.must('GET', `/chambers/${id}/allocations`)).toEqual({
      ...before,
      phase: 'ALLOCATE_REVEAL',
      revealed: [{ did: bob.did, allocations: [{ ideaId: 'idea-1', bps: 2_500 }], salt: SALT }],
      tally: [{ ideaId: 'idea-1', backers: 1, totalBps: 2_500 }],
    });
    expect(await service.must('GET', '/ideas/abc')).toMatchObject({ backers: 1, totalBps: 2_500 });
  });
});

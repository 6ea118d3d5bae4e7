// Chambers, ideas and allocations as their readers see them (specification, Endpoints).
import { describe, expect, it } from 'vitest';
import { PHASES, toTimestamp } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, enterPhase, openChamber, SALT } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import { House } from '../kit/house.ts';
import type { Signer } from '../kit/signer.ts';

describe('POST /chambers', () => {
  it('opens a chamber in LOBBY; ids count from 1', async () => {
    const house = new House();
    const by = await house.agent();
    const body = { name: 'First', ...deadlinesFrom(START) };
    expect(await house.must('POST', '/chambers', { by, body })).toEqual({ chamberId: 1, phase: 'LOBBY' });
    expect(await house.must('POST', '/chambers', { by, body })).toEqual({ chamberId: 2, phase: 'LOBBY' });
  });

  it.each([
    ['a lobby deadline that has passed', [0, 1, 2, 3, 4], 'lobbyDeadline', toTimestamp(START)],
    ['deadlines out of order', [1, 2, 3, 5, 4], 'allocateRevealDeadline', undefined],
  ])('refuses %s', async (_what, hours, field, serviceTime) => {
    const house = new House();
    const body = { name: 'Test', ...deadlinesFrom(START, hours) };
    const refused = await house.request('POST', '/chambers', { by: await house.agent(), body });
    const detail = expect.stringMatching(`^${field}: `);
    expect(refused.status).toBe(400);
    expect(refused.body).toEqual({ error: 'FORUM_ERR_VALIDATION', detail, ...(serviceTime && { serviceTime }) });
  });
});

describe('GET /chambers/:id', () => {
  it('shows the whole chamber', async () => {
    const house = new House();
    const [ann, bob] = [await house.agent(), await house.agent()];
    const id = await openChamber(house, [ann, bob], { minBackersForGraduation: 2, turnSeconds: 60 });
    await enterPhase(house, id, 'PROPOSAL');
    await house.must('POST', `/chambers/${id}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ABC' } });
    house.clock.advance(60_000);
    expect(await house.must('GET', `/chambers/${id}`)).toEqual({
      chamberId: id,
      phase: 'PROPOSAL',
      name: 'Test',
      deadlines: deadlinesFrom(START),
      minBackersForGraduation: 2,
      turnSeconds: 60,
      topic: null,
      maxMembers: null,
      rounds: null,
      movesPerTurn: null,
      ends: {
        lobby: deadlinesFrom(START).lobbyDeadline,
        proposal: deadlinesFrom(START).proposalDeadline,
        debate: deadlinesFrom(START).debateDeadline,
        commit: deadlinesFrom(START).allocateCommitDeadline,
        reveal: deadlinesFrom(START).allocateRevealDeadline,
      },
      members: [ann.did, bob.did],
      currentTurnAgent: bob.did,
      now: toTimestamp(house.clock.read()),
      phaseEndsAt: deadlinesFrom(START).proposalDeadline,
      turnEndsAt: toTimestamp(house.clock.read() + 60_000),
      ideas: [{ ideaId: 'idea-1', ticker: 'ABC', name: 'Idea', creator: ann.did }],
      merkleRoot: null,
      committedAt: null,
      committedTxHash: null,
      commitStatus: 'open',
    });
  });
});

describe('GET /chambers', () => {
  it('shows items newest first', async () => {
    const house = new House();
    const ann = await house.agent();
    await openChamber(house, [ann]);
    await openChamber(house, [ann, await house.agent()]);
    const deadlines = deadlinesFrom(START);
    const item = { phase: 'LOBBY', name: 'Test', deadlines, phaseEndsAt: deadlines.lobbyDeadline };
    expect(await house.must('GET', '/chambers')).toEqual([
      { chamberId: 2, ...item, memberCount: 2 },
      { chamberId: 1, ...item, memberCount: 1 },
    ]);
  });

  it('returns 50 without a limit, and pages by before', async () => {
    const house = new House();
    const by = await house.agent();
    const body = { name: 'Test', ...deadlinesFrom(START) };
    for (let id = 1; id <= 53; id++) await house.must('POST', '/chambers', { by, body });
    const ids = async (query: string) =>
      (await house.must('GET', `/chambers${query}`)).map((item: { chamberId: number }) => item.chamberId);
    expect(await ids('')).toHaveLength(50);
    expect(await ids('?limit=200')).toHaveLength(53);
    expect(await ids('?limit=2')).toEqual([53, 52]);
    expect(await ids('?limit=2&before=52')).toEqual([51, 50]);
    expect(await ids('?before=3')).toEqual([2, 1]);
    expect(await ids('?before=1')).toEqual([]);
  });

  it('filters by the phase of the moment', async () => {
    const house = new House();
    const first = await openChamber(house, []);
    house.clock.advance(HOUR / 2);
    const second = await openChamber(house, []);
    const ids = async (phase: string) =>
      (await house.must('GET', `/chambers?phase=${phase}`)).map((item: { chamberId: number }) => item.chamberId);
    const nowhere = Object.fromEntries(PHASES.map((phase) => [phase, []]));
    for (const phase of PHASES.slice(0, 5)) {
      const found = Object.fromEntries(await Promise.all(PHASES.map(async (other) => [other, await ids(other)])));
      expect(found).toEqual({ ...nowhere, [phase]: [second, first] });
      house.clock.advance(HOUR);
    }
    await enterPhase(house, first, 'COMMITTED');
    expect([await ids('ALLOCATE_REVEAL'), await ids('COMMITTED')]).toEqual([[second], [first]]);
  });

  it.each([
    ['/chambers?member=x', 'member: must be a did:key'],
    ['/chambers?name=x', 'name: unknown query parameter; known: phase, member, limit, before'],
    ['/chambers?limit=1&limit=2', 'limit: must not be given twice'],
    ['/ideas?phase=LOBBY', 'phase: unknown'],
    ['/ideas/ABC?chamberid=1', 'chamberid: unknown query parameter; did you mean "chamberId"?'],
    ['/chambers?phsae=LOBBY', 'phsae: unknown query parameter; did you mean "phase"?'],
  ])('rejects %s', async (path, detail) => {
    expect(await new House().request('GET', path)).toMatchObject({
      status: 400,
      body: { error: 'FORUM_ERR_VALIDATION', detail: expect.stringContaining(detail) },
    });
  });

  it.each(['/health?x=1', '/?x=1&x=2', '/docs?theme=dark'])('serves %s: it takes no query', async (path) => {
    const house = new House();
    expect((await house.app.request(path, {}, {})).status).toBe(200);
  });

  it.each(['?limit=0', '?limit=201', '?limit=ten', '?limit=', '?phase=lobby', '?phase=', '?before=-1', '?before=x'])(
    'refuses %s by the name of the parameter',
    async (query) => {
      const name = query.slice(1, query.indexOf('='));
      expect(await new House().request('GET', `/chambers${query}`)).toMatchObject({
        status: 400,
        body: { error: 'FORUM_ERR_VALIDATION', detail: expect.stringMatching(`^${name}: `) },
      });
    },
  );
});

describe('ideas', () => {
  /** A chamber for each ticker, side by side, with one idea each. */
  async function proposeIn(house: House, by: Signer, tickers: readonly string[]): Promise<readonly number[]> {
    const ids: number[] = [];
    for (const _ of tickers) ids.push(await openChamber(house, [by]));
    await enterPhase(house, ids[0] ?? 0, 'PROPOSAL');
    for (const [index, ticker] of tickers.entries()) {
      const body = { name: `${ticker} of ${ids[index]}`, ticker, description: 'd' };
      await house.must('POST', `/chambers/${ids[index]}/propose`, { by, body });
    }
    return ids;
  }

  /** The idea of each chamber gets its one backer, so that it graduates. */
  async function back(house: House, by: Signer, ids: readonly number[]): Promise<void> {
    const phases = { commit: 'ALLOCATE_COMMIT', reveal: 'ALLOCATE_REVEAL' } as const;
    for (const operation of ['commit', 'reveal'] as const) {
      await enterPhase(house, ids[0] ?? 0, phases[operation]);
      for (const id of ids) {
        const body = allocationOf(id, by, { 'idea-1': 10_000 })[operation];
        await house.must('POST', `/chambers/${id}/allocate/${operation}`, { by, body });
      }
    }
  }

  /** As the relayer does it, after the end of the chamber. */
  async function deploy(house: House, id: number, graduatedAt: string): Promise<void> {
    await enterPhase(house, id, 'COMMITTED');
    const tokenAddress = `0x${`0${id}`.repeat(20)}`;
    const payload = { ideaId: 'idea-1', tokenAddress, txHash: '0x00', graduatedAt } as const;
    await house.forum.submit({ operation: 'record', chamberId: id, fact: { type: 'idea.deployed', payload } });
  }

  it('are listed per chamber from the beginning, and everywhere once they have a token', async () => {
    const house = new House();
    const by = await house.agent();
    const [id = 0] = await proposeIn(house, by, ['Abc']);
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
    };
    expect(await house.must('GET', `/chambers/${id}/ideas`)).toEqual([idea]);
    expect(await house.must('GET', '/ideas/aBC')).toEqual(idea);
    expect(await house.must('GET', '/ideas')).toEqual([]);
    const graduatedAt = '2030-01-02T00:00:00.000Z';
    await back(house, by, [id]);
    await deploy(house, id, graduatedAt);
    const backed = { ...idea, backers: 1, totalBps: 10_000 };
    const graduate = { ...backed, tokenAddress: `0x${'01'.repeat(20)}`, graduatedAt, deployStatus: 'deployed' };
    expect(await house.must('GET', '/ideas')).toEqual([graduate]);
    expect(await house.must('GET', `/chambers/${id}/ideas`)).toEqual([graduate]);
  });

  it('are found by ticker: a graduate before others, then the newest, or the one of a chamber', async () => {
    const house = new House();
    const by = await house.agent();
    const [first = 0, second = 0, third = 0] = await proposeIn(house, by, ['ABC', 'abc', 'Abc']);
    const found = async (query = '') => (await house.must('GET', `/ideas/ABC${query}`)).chamberId;
    expect([await found(), await found(`?chamberId=${second}`)]).toEqual([third, second]);
    await back(house, by, [first, second]);
    await deploy(house, first, '2030-01-02T00:00:00.000Z');
    expect(await found()).toBe(first);
    await deploy(house, second, '2030-01-03T00:00:00.000Z');
    expect(await found()).toBe(second);
    const graduates = await house.must('GET', '/ideas');
    expect(graduates.map((idea: { chamberId: number }) => idea.chamberId)).toEqual([second, first]);
    expect(await house.must('GET', '/ideas?limit=1')).toHaveLength(1);
  });

  it('are found by the time of their proposal, then of their graduation, whichever chamber is newer', async () => {
    const house = new House();
    const by = await house.agent();
    const [older, newer] = [await openChamber(house, [by]), await openChamber(house, [by])];
    await enterPhase(house, older, 'PROPOSAL');
    for (const id of [newer, older]) {
      await house.must('POST', `/chambers/${id}/propose`, { by, body: { name: 'Idea', ticker: 'ABC' } });
      house.clock.advance(1_000);
    }
    const found = async () => (await house.must('GET', '/ideas/ABC')).chamberId;
    expect(await found()).toBe(older);
    await back(house, by, [older, newer]);
    await deploy(house, newer, '2030-01-03T00:00:00.000Z');
    await deploy(house, older, '2030-01-02T00:00:00.000Z');
    expect(await found()).toBe(newer);
  });

  it.each([
    ['/ideas/NOPE', 404],
    ['/ideas/ABC?chamberId=9', 404],
    ['/ideas/%F0%9F%98%80', 404],
    ['/ideas/ABC?chamberId=x', 400],
    ['/ideas?limit=0', 400],
  ])('are refused at %s with %i', async (path, status) => {
    const house = new House();
    await proposeIn(house, await house.agent(), ['ABC']);
    expect((await house.request('GET', path)).status).toBe(status);
  });
});

describe('allocations', () => {
  it('are shown as committed, then as revealed with the tally', async () => {
    const house = new House();
    const [ann, bob] = [await house.agent(), await house.agent()];
    const id = await openChamber(house, [ann, bob]);
    await enterPhase(house, id, 'PROPOSAL');
    await house.must('POST', `/chambers/${id}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ABC' } });
    await enterPhase(house, id, 'ALLOCATE_COMMIT');
    const { commit, reveal } = allocationOf(id, bob, { 'idea-1': 2_500 });
    await house.must('POST', `/chambers/${id}/allocate/commit`, { by: bob, body: commit });
    const committed = [{ did: bob.did, ...commit }];
    const before = { chamberId: id, phase: 'ALLOCATE_COMMIT', committed, revealed: [], tally: [] };
    expect(await house.must('GET', `/chambers/${id}/allocations`)).toEqual(before);
    await enterPhase(house, id, 'ALLOCATE_REVEAL');
    const answer = await house.must('POST', `/chambers/${id}/allocate/reveal`, { by: bob, body: reveal });
    expect(answer).toEqual({ ok: true, verified: true });
    expect(await house.must('GET', `/chambers/${id}/allocations`)).toEqual({
      ...before,
      phase: 'ALLOCATE_REVEAL',
      revealed: [{ did: bob.did, allocations: [{ ideaId: 'idea-1', bps: 2_500 }], salt: SALT }],
      tally: [{ ideaId: 'idea-1', backers: 1, totalBps: 2_500 }],
    });
    expect(await house.must('GET', '/ideas/abc')).toMatchObject({ backers: 1, totalBps: 2_500 });
  });
});

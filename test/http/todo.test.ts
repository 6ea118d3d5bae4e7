// An agent's duties and options (GET /me/todo), its profile (GET /agents/:did) and its chambers.
import { describe, expect, it, vi } from 'vitest';
import type { TodoView } from '../../projections/todo.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR, START, TestClock } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { onSqliteOnly } from '../kit/store.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { TestService, withAgent, withTwoAgents } from '../kit/test-service.ts';

onSqliteOnly('the order of steps is that of one process');

async function todoOf(service: TestService, by: Signer, query = ''): Promise<readonly TodoView[]> {
  const { todo } = await service.must('GET', `/me/todo${query}`, { by });
  return todo as readonly TodoView[];
}

/** Opens a chamber that its creator does not join. */
async function chamberBy(service: TestService, by: Signer, members: readonly Signer[]): Promise<number> {
  const body = { name: 'Test', ...deadlinesFrom(service.clock.read()) };
  const { chamberId } = await service.must('POST', '/chambers', { by, body });
  for (const member of members) await service.must('POST', `/chambers/${chamberId}/join`, { by: member });
  return chamberId;
}

/** Formats `must` and `may` as text. */
async function short(service: TestService, by: Signer): Promise<string> {
  const [item] = await todoOf(service, by);
  return item === undefined ? 'nothing' : [item.must, ...item.may].join(' ');
}

describe('GET /me/todo', () => {
  it('GET /me/todo names in each phase the move that is due and the moves that are accepted', async () => {
    const service = new TestService();
    const [ann, bob, eve] = [await service.agent(), await service.agent(), await service.agent()];
    const id = await chamberBy(service, eve, [ann, bob]);
    const words = async () => [await short(service, ann), await short(service, bob), await short(service, eve)];
    expect(await words()).toEqual(['wait', 'wait', 'wait join']);
    await enterPhase(service, id, 'PROPOSAL');
    expect(await words()).toEqual(['pass propose', 'wait', 'nothing']);
    await service.must('POST', `/chambers/${id}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ONE' } });
    await service.must('POST', `/chambers/${id}/pass`, { by: ann });
    expect(await words()).toEqual(['wait', 'pass propose', 'nothing']);
    await enterPhase(service, id, 'DEBATE');
    expect(await words()).toEqual(['pass debate amend withdraw', 'wait', 'nothing']);
    await enterPhase(service, id, 'ALLOCATE_COMMIT');
    expect(await words()).toEqual(['commit', 'commit', 'nothing']);
    const allocation = allocationOf(id, ann, { 'idea-1': 5000 });
    await service.must('POST', `/chambers/${id}/allocate/commit`, {
      by: ann,
      body: allocation.commit,
    });
    expect(await words()).toEqual(['wait', 'commit', 'nothing']);
    await enterPhase(service, id, 'ALLOCATE_REVEAL');
    expect(await words()).toEqual(['reveal', 'wait', 'nothing']);
    await service.must('POST', `/chambers/${id}/allocate/reveal`, { by: ann, body: allocation.reveal });
    expect(await words()).toEqual(['wait', 'wait', 'nothing']);
    service.clock.advance(2 * HOUR);
    expect(await words()).toEqual(['wait', 'wait', 'nothing']);
  });

  it('GET /me/todo never shows an outdated list', async () => {
    const service = new TestService();
    const { lists } = service.store;
    const read = lists.listMemberships.bind(lists);
    /** The cache of lists is keyed by array, so a copied array causes a new list. */
    const currentTodo = async (by: Signer) => {
      const copies = vi
        .spyOn(lists, 'listMemberships')
        .mockImplementation(async (...query) => [...(await read(...query))]);
      const { todoLists } = service.forum;
      const views = await todoLists.views(await todoLists.of(by.did, service.forum.now()), 200);
      copies.mockRestore();
      return views;
    };
    const agents = [await service.agent(), await service.agent(), await service.agent()];
    const [ann, bob] = agents as [Signer, Signer];
    const paced = { rounds: { proposal: 2, debate: 2 }, turnSeconds: 60 };
    const ids = [
      await openChamber(service, agents, { turnSeconds: 60 }),
      await openChamber(service, agents, paced),
      await openChamber(service, [ann, bob]),
    ];
    const seen = new Set<string>();
    for (let step = 0; service.clock.read() < START + 5.1 * HOUR; step++) {
      const id = ids[step % ids.length];
      for (const by of agents) {
        const shown = await todoOf(service, by);
        expect(shown).toEqual(await currentTodo(by));
        for (const { phase, must } of shown) seen.add(`${phase} ${must}`);
        // The service accepts the move if it is due, and rejects it otherwise.
        const share = allocationOf(id ?? 0, by, {});
        await service.request('POST', `/chambers/${id}/allocate/commit`, { by, body: share.commit });
        await service.request('POST', `/chambers/${id}/allocate/reveal`, { by, body: share.reveal });
        if (step % 4 > 0) continue;
        await service.request('POST', `/chambers/${id}/propose`, { by, body: { name: 'Idea', ticker: `T${step}` } });
        await service.request('POST', `/chambers/${id}/pass`, { by });
      }
      service.clock.advance([1, 59_999, 1, 240_000, 61_000, 1_200_000][step % 6] ?? 0);
    }
    expect([...seen]).toEqual(expect.arrayContaining(['PROPOSAL pass', 'DEBATE pass', 'ALLOCATE_REVEAL reveal']));
    expect(await todoOf(service, ann)).toHaveLength(ids.length);
    await service.must('POST', '/me/retire', { by: ann });
    const reasons = (await todoOf(service, ann)).map(({ why }) => why);
    expect(reasons).toEqual(ids.map(() => expect.stringMatching(/^Your key was retired/)));
  });

  it('GET /me/todo has exactly the documented members', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const id = await openChamber(service, [ann, bob], { turnSeconds: 60 });
    await enterPhase(service, id, 'PROPOSAL');
    service.clock.advance(90_000);
    const deadlines = deadlinesFrom(START);
    expect(await service.must('GET', '/me/todo', { by: ann })).toEqual({
      now: toTimestamp(service.clock.read()),
      todo: [
        {
          chamberId: id,
          name: 'Test',
          phase: 'PROPOSAL',
          must: 'wait',
          may: [],
          turnHolder: bob.did,
          phaseEndsAt: deadlines.proposalDeadline,
          turnEndsAt: toTimestamp(service.clock.read() + 30_000),
          committed: false,
          revealed: false,
          lastEventId: 3,
          why: `It is the turn of ${bob.did} until that agent passes, or until ${toTimestamp(service.clock.read() + 30_000)} at the latest.`,
          missedTurns: 1,
        },
      ],
      more: false,
      version: expect.stringMatching(/^[\w-]{22}$/),
    });
  });

  it('GET /me/todo gives the reason for a wait, and each change of the reason changes the version', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const id = await openChamber(service, [ann, bob]);
    const seen = async () => {
      const { todo, version } = await service.must('GET', '/me/todo', { by: ann });
      return { version, why: (todo as unknown as readonly TodoView[])[0]?.why };
    };
    const ends = deadlinesFrom(START);
    expect(await seen()).toMatchObject({ why: `Members may join until ${ends.lobbyDeadline}.` });
    await enterPhase(service, id, 'PROPOSAL');
    expect(await seen()).toMatchObject({ why: null });
    await enterPhase(service, id, 'ALLOCATE_COMMIT');
    await service.must('POST', `/chambers/${id}/allocate/commit`, { by: ann, body: allocationOf(id, ann, {}).commit });
    expect(await seen()).toMatchObject({ why: `Members may commit until ${ends.allocateCommitDeadline}.` });
    await enterPhase(service, id, 'ALLOCATE_REVEAL');
    await service.must('POST', `/chambers/${id}/allocate/reveal`, { by: ann, body: allocationOf(id, ann, {}).reveal });
    const open = await seen();
    expect(open).toMatchObject({ why: `Members may reveal until ${ends.allocateRevealDeadline}.` });
    service.clock.advance(HOUR);
    const closed = await seen();
    expect(closed).toMatchObject({
      why: `No more moves since ${ends.allocateRevealDeadline}: the service is committing the chamber to the chain.`,
    });
    expect(closed.version).not.toBe(open.version);
  });

  it('GET /me/todo counts expired turns across phases, passes and a restart', async () => {
    const { clock, path } = { clock: new TestClock(), path: temporaryDatabase() };
    const before = new TestService({ clock, path });
    const [ann, bob] = [await before.agent(), await before.agent()];
    const id = await openChamber(before, [ann, bob], { turnSeconds: 60 });
    const missed = async (service: TestService) =>
      (await Promise.all([ann, bob].map((by) => todoOf(service, by)))).map(([item]) => item?.missedTurns);
    await enterPhase(before, id, 'PROPOSAL');
    clock.advance(3 * 60_000);
    expect(await missed(before)).toEqual([2, 1]);
    await before.must('POST', `/chambers/${id}/pass`, { by: bob });
    expect(await missed(before)).toEqual([2, 1]);
    await enterPhase(before, id, 'DEBATE');
    expect(await missed(before)).toEqual([31, 29]);
    await before.must('POST', `/chambers/${id}/pass`, { by: ann });
    await before.close();
    clock.advance(60_000);
    const service = new TestService({ clock, path });
    expect(await missed(service)).toEqual([31, 30]);
    await service.close();
  });

  it('GET /me/todo lists duties first, then earlier ends, and is truncated by limit', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const waiting = await openChamber(service, [bob, ann]);
    const acting = await openChamber(service, [ann, bob]);
    const limited = await openChamber(service, [ann, bob], { turnSeconds: 60 });
    await enterPhase(service, acting, 'PROPOSAL');
    expect((await todoOf(service, ann)).map(({ chamberId }) => chamberId)).toEqual([limited, acting, waiting]);
    expect(await service.must('GET', '/me/todo?limit=2', { by: ann })).toMatchObject({
      todo: [{ chamberId: limited }, { chamberId: acting }],
      more: true,
    });
  });

  it('GET /me/todo returns in one request everything that a member of 4 of 40 open chambers needs, and folds none of them', async () => {
    const { clock, path } = { clock: new TestClock(), path: temporaryDatabase() };
    const before = new TestService({ clock, path });
    const [ann, bob] = [await before.agent(), await before.agent()];
    const now = clock.read();
    const openFrom = (hours: readonly number[], members: readonly Signer[]) =>
      openChamber(before, members, deadlinesFrom(now, hours));
    for (let foreign = 0; foreign < 36; foreign++) await openFrom([1, 2, 3, 4, 5], [bob]);
    const commit = await openFrom([1, 2, 3, 7, 8], [bob, ann]);
    const lobby = await openFrom([5, 6, 7, 8, 9], [bob, ann]);
    const turn = await openFrom([3, 5, 6, 7, 8], [ann, bob]);
    const others = await openFrom([1, 2, 6, 7, 8], [bob, ann]);
    await before.close();
    clock.advance(4 * HOUR);

    const service = new TestService({ clock, path });
    const reads = [vi.spyOn(service.log, 'readPage'), vi.spyOn(service.log, 'readSnapshot')];
    const due = (await todoOf(service, ann)).map(({ chamberId, must, may, turnHolder, phaseEndsAt, lastEventId }) => {
      return [chamberId, must, may, turnHolder, (Date.parse(phaseEndsAt ?? '') - now) / HOUR, lastEventId];
    });
    expect(due).toEqual([
      [turn, 'pass', ['propose'], ann.did, 5, 3],
      [commit, 'commit', [], null, 7, 3],
      [lobby, 'wait', [], null, 5, 3],
      [others, 'wait', [], bob.did, 6, 3],
    ]);
    const streams = reads.flatMap(({ mock }) => mock.calls.map(([stream]) => stream));
    expect(streams.filter((stream) => stream !== ann.did)).toEqual([]);
  });

  it('GET /me/todo must be signed, and takes only limit, wait and since', async () => {
    const { service, by } = await withAgent();
    expect(await service.request('GET', '/me/todo')).toMatchObject({ status: 401 });
    for (const query of [
      'wait=0',
      'wait=61',
      'wait=1.5',
      'limit=201',
      'waits=5',
      'since=',
      'since=a%20b',
      `since=${'v'.repeat(65)}`,
    ]) {
      const [name] = query.split('=');
      const rejected = {
        status: 400,
        body: { error: 'FORUM_ERR_VALIDATION', detail: expect.stringContaining(`${name}:`) },
      };
      expect(await service.request('GET', `/me/todo?${query}`, { by })).toMatchObject(rejected);
    }
  });
});

describe('GET /agents/:did', () => {
  it('GET /agents/:did shows only public data', async () => {
    const { service, ann, bob } = await withTwoAgents();
    await openChamber(service, [ann]);
    const id = await openChamber(service, [ann, bob]);
    await enterPhase(service, id, 'PROPOSAL');
    await service.must('POST', `/chambers/${id}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ONE' } });
    const view = await service.must('GET', `/agents/${ann.did}`);
    expect(view).toEqual({
      agentId: ann.did.replace('did:key:', 'agent-'),
      walletProven: false,
      did: ann.did,
      label: null,
      personality: expect.any(Object),
      registeredAt: toTimestamp(START),
      chambers: { count: 2, newest: id },
      proposed: 1,
      graduated: 0,
    });
    expect(await service.request('GET', '/agents/did:key:zNobody')).toMatchObject({ status: 404 });
  });
});

describe('labels, topics and seats', () => {
  it('labels, topics and seats are shown if they were given', async () => {
    const service = new TestService();
    const ann = await service.agent({ label: 'Ann 🌦' });
    expect(await service.must('GET', `/agents/${ann.did}`)).toMatchObject({ label: 'Ann 🌦' });
    const id = await openChamber(service, [ann], { topic: 'Rain', maxMembers: 2 });
    expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({ topic: 'Rain', maxMembers: 2 });
    const [created] = await service.events(id);
    expect(created?.payload).toMatchObject({ topic: 'Rain', maxMembers: 2 });
  });

  it('labels, topics and seats have limits', async () => {
    const { service, by } = await withAgent();
    const create = (members: object) =>
      service.request('POST', '/chambers', { by, body: { name: 'Test', ...deadlinesFrom(START), ...members } });
    for (const members of [{ topic: 'x'.repeat(2_001) }, { maxMembers: 1 }, { maxMembers: 257 }]) {
      expect(await create(members)).toMatchObject({ status: 400 });
    }
    await expect(service.agent({ label: '' })).rejects.toThrow('400');
    await expect(service.agent({ label: 'x'.repeat(65) })).rejects.toThrow('400');
  });

  it('the seats of a chamber are limited by maxMembers', async () => {
    const service = new TestService();
    const agents = [await service.agent(), await service.agent(), await service.agent()];
    const id = await openChamber(service, agents.slice(0, 2), { maxMembers: 2 });
    expect(await service.request('POST', `/chambers/${id}/join`, { by: agents[2] })).toMatchObject({ status: 409 });
  });
});

describe('GET /chambers?member=', () => {
  it('GET /chambers?member= lists the chambers that the agent joined, newest first, in pages and by phase', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const ids = [
      await openChamber(service, [ann]),
      await chamberBy(service, ann, [bob]),
      await openChamber(service, [ann]),
    ];
    const list = async (query: string) =>
      ((await service.must('GET', `/chambers?${query}`)) as unknown as { chamberId: number }[]).map(
        ({ chamberId }) => chamberId,
      );
    expect(await list(`member=${ann.did}`)).toEqual([ids[2], ids[0]]);
    expect(await list(`member=${ann.did}&limit=1`)).toEqual([ids[2]]);
    expect(await list(`member=${ann.did}&before=${ids[2]}`)).toEqual([ids[0]]);
    expect(await list(`member=${bob.did}&phase=LOBBY`)).toEqual([ids[1]]);
    expect(await list(`member=${bob.did}&phase=DEBATE`)).toEqual([]);
    expect(await service.request('GET', '/chambers?member=ann')).toMatchObject({ status: 400 });
  });
});

// What an agent must do and may do now (GET /me/todo), who it is (GET /agents/:did) and where it is a member.
import { describe, expect, it, vi } from 'vitest';
import type { TodoView } from '../../projections/todo.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR, START, TestClock } from '../kit/clock.ts';
import { House } from '../kit/house.ts';
import type { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

async function todoOf(house: House, by: Signer, query = ''): Promise<readonly TodoView[]> {
  const { todo } = await house.must('GET', `/me/todo${query}`, { by });
  return todo as readonly TodoView[];
}

/** A chamber whose creator does not join it. */
async function chamberBy(house: House, by: Signer, members: readonly Signer[]): Promise<number> {
  const body = { name: 'Test', ...deadlinesFrom(house.clock.read()) };
  const { chamberId } = await house.must('POST', '/chambers', { by, body });
  for (const member of members) await house.must('POST', `/chambers/${chamberId}/join`, { by: member });
  return chamberId;
}

/** must and may, in a word each. */
async function short(house: House, by: Signer): Promise<string> {
  const [item] = await todoOf(house, by);
  return item === undefined ? 'nothing' : [item.must, ...item.may].join(' ');
}

describe('GET /me/todo', () => {
  it('says in each phase what the chamber waits for and what would be accepted', async () => {
    const house = new House();
    const [ann, bob, eve] = [await house.agent(), await house.agent(), await house.agent()];
    const id = await chamberBy(house, eve, [ann, bob]);
    const words = async () => [await short(house, ann), await short(house, bob), await short(house, eve)];
    expect(await words()).toEqual(['wait', 'wait', 'wait join']);
    await enterPhase(house, id, 'PROPOSAL');
    expect(await words()).toEqual(['pass propose', 'wait', 'wait']);
    await house.must('POST', `/chambers/${id}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ONE' } });
    await house.must('POST', `/chambers/${id}/pass`, { by: ann });
    expect(await words()).toEqual(['wait', 'pass propose', 'wait']);
    await enterPhase(house, id, 'DEBATE');
    expect(await words()).toEqual(['pass debate', 'wait', 'wait']);
    await enterPhase(house, id, 'ALLOCATE_COMMIT');
    expect(await words()).toEqual(['commit', 'commit', 'wait']);
    const allocation = allocationOf(id, ann, { 'idea-1': 5000 });
    await house.must('POST', `/chambers/${id}/allocate/commit`, {
      by: ann,
      body: allocation.commit,
    });
    expect(await words()).toEqual(['wait', 'commit', 'wait']);
    await enterPhase(house, id, 'ALLOCATE_REVEAL');
    expect(await words()).toEqual(['reveal', 'wait', 'wait']);
    await house.must('POST', `/chambers/${id}/allocate/reveal`, { by: ann, body: allocation.reveal });
    expect(await words()).toEqual(['wait', 'wait', 'wait']);
    house.clock.advance(2 * HOUR);
    expect(await words()).toEqual(['wait', 'wait', 'wait']);
  });

  it('holds the members of design and specification', async () => {
    const house = new House();
    const [ann, bob] = [await house.agent(), await house.agent()];
    const id = await openChamber(house, [ann, bob], { turnSeconds: 60 });
    await enterPhase(house, id, 'PROPOSAL');
    house.clock.advance(90_000);
    const deadlines = deadlinesFrom(START);
    expect(await house.must('GET', '/me/todo', { by: ann })).toEqual({
      now: toTimestamp(house.clock.read()),
      todo: [
        {
          chamberId: id,
          name: 'Test',
          phase: 'PROPOSAL',
          must: 'wait',
          may: [],
          turnHolder: bob.did,
          phaseEndsAt: deadlines.proposalDeadline,
          turnEndsAt: toTimestamp(house.clock.read() + 30_000),
          committed: false,
          revealed: false,
          lastEventId: 3,
        },
      ],
      more: false,
      version: expect.stringMatching(/^[\w-]{22}$/),
    });
  });

  it('puts first what must be done, then what ends sooner, and is cut by limit', async () => {
    const house = new House();
    const [ann, bob] = [await house.agent(), await house.agent()];
    const waiting = await openChamber(house, [bob, ann]);
    const acting = await openChamber(house, [ann, bob]);
    const limited = await openChamber(house, [ann, bob], { turnSeconds: 60 });
    await enterPhase(house, acting, 'PROPOSAL');
    expect((await todoOf(house, ann)).map(({ chamberId }) => chamberId)).toEqual([limited, acting, waiting]);
    expect(await house.must('GET', '/me/todo?limit=2', { by: ann })).toMatchObject({
      todo: [{ chamberId: limited }, { chamberId: acting }],
      more: true,
    });
  });

  it('one request holds all that a member of 4 of 40 open chambers needs, and folds none', async () => {
    const { clock, path } = { clock: new TestClock(), path: temporaryDatabase() };
    const before = new House({ clock, path });
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

    const house = new House({ clock, path });
    const reads = [vi.spyOn(house.log, 'readPage'), vi.spyOn(house.log, 'readSnapshot')];
    const due = (await todoOf(house, ann)).map(({ chamberId, must, may, turnHolder, phaseEndsAt, lastEventId }) => {
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

  it('is signed, and takes only limit, wait and since', async () => {
    const house = new House();
    const by = await house.agent();
    expect(await house.request('GET', '/me/todo')).toMatchObject({ status: 401 });
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
      expect(await house.request('GET', `/me/todo?${query}`, { by })).toMatchObject(rejected);
    }
  });
});

describe('GET /agents/:did', () => {
  it('shows what anybody may read', async () => {
    const house = new House();
    const [ann, bob] = [await house.agent(), await house.agent()];
    await openChamber(house, [ann]);
    const id = await openChamber(house, [ann, bob]);
    await enterPhase(house, id, 'PROPOSAL');
    await house.must('POST', `/chambers/${id}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ONE' } });
    const view = await house.must('GET', `/agents/${ann.did}`);
    expect(view).toEqual({
      agentId: ann.did.replace('did:key:', 'agent-'),
      did: ann.did,
      label: null,
      personality: expect.any(Object),
      registeredAt: toTimestamp(START),
      chambers: { count: 2, newest: id },
      proposed: 1,
      graduated: 0,
    });
    expect(await house.request('GET', '/agents/did:key:zNobody')).toMatchObject({ status: 404 });
  });
});

describe('labels, topics and places', () => {
  it('are shown where they were given', async () => {
    const house = new House();
    const ann = await house.agent({ label: 'Ann 🌦' });
    expect(await house.must('GET', `/agents/${ann.did}`)).toMatchObject({ label: 'Ann 🌦' });
    const id = await openChamber(house, [ann], { topic: 'Rain', maxMembers: 2 });
    expect(await house.must('GET', `/chambers/${id}`)).toMatchObject({ topic: 'Rain', maxMembers: 2 });
    const [created] = await house.events(id);
    expect(created?.payload).toMatchObject({ topic: 'Rain', maxMembers: 2 });
  });

  it('have limits', async () => {
    const house = new House();
    const by = await house.agent();
    const create = (members: object) =>
      house.request('POST', '/chambers', { by, body: { name: 'Test', ...deadlinesFrom(START), ...members } });
    for (const members of [{ topic: 'x'.repeat(2_001) }, { maxMembers: 1 }, { maxMembers: 257 }]) {
      expect(await create(members)).toMatchObject({ status: 400 });
    }
    await expect(house.agent({ label: '' })).rejects.toThrow('400');
    await expect(house.agent({ label: 'x'.repeat(65) })).rejects.toThrow('400');
  });

  it('end where the creator said', async () => {
    const house = new House();
    const agents = [await house.agent(), await house.agent(), await house.agent()];
    const id = await openChamber(house, agents.slice(0, 2), { maxMembers: 2 });
    expect(await house.request('POST', `/chambers/${id}/join`, { by: agents[2] })).toMatchObject({ status: 409 });
  });
});

describe('GET /chambers?member=', () => {
  it('leaves the chambers that the agent joined, newest first, in pages and by phase', async () => {
    const house = new House();
    const [ann, bob] = [await house.agent(), await house.agent()];
    const ids = [await openChamber(house, [ann]), await chamberBy(house, ann, [bob]), await openChamber(house, [ann])];
    const list = async (query: string) =>
      ((await house.must('GET', `/chambers?${query}`)) as unknown as { chamberId: number }[]).map(
        ({ chamberId }) => chamberId,
      );
    expect(await list(`member=${ann.did}`)).toEqual([ids[2], ids[0]]);
    expect(await list(`member=${ann.did}&limit=1`)).toEqual([ids[2]]);
    expect(await list(`member=${ann.did}&before=${ids[2]}`)).toEqual([ids[0]]);
    expect(await list(`member=${bob.did}&phase=LOBBY`)).toEqual([ids[1]]);
    expect(await list(`member=${bob.did}&phase=DEBATE`)).toEqual([]);
    expect(await house.request('GET', '/chambers?member=ann')).toMatchObject({ status: 400 });
  });
});

// Waiting at GET /me/todo: for a change of the list since a version, or for something to be due.
import { describe, expect, it, vi } from 'vitest';
import type { Forum } from '../../src/forum/forum.ts';
import { ForumError } from '../../src/vocabulary/errors.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { House } from '../kit/house.ts';
import type { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

/** Longer than a test may take: a response comes earlier, or the test fails. */
const LONG = 'wait=60';
const IN_TIME = { timeout: 40_000 };

async function house2() {
  const house = new House({ settings: { WAITS_PER_DID_MAX: '2' } });
  const [ann, bob] = [await house.agent(), await house.agent()];
  return { house, ann, bob, get: todo(house) };
}

function todo(house: House) {
  return (by: Signer, query = '') => house.must('GET', `/me/todo${query && `?${query}`}`, { by });
}

/** A chamber in PROPOSAL, where it is the first member's turn. */
async function proposing(house: House, members: readonly Signer[]): Promise<number> {
  const id = await openChamber(house, members);
  await enterPhase(house, id, 'PROPOSAL');
  return id;
}

const pass = (house: House, id: number, by: Signer) => house.must('POST', `/chambers/${id}/pass`, { by });

/** Resolves once a request waits that follows the agent's chambers: a change before would be no change. */
function begun({ forum }: House): () => Promise<void> {
  const reads = vi.spyOn(forum.todoLists, 'of');
  // The first read finds the chambers; the second one follows them.
  return () => vi.waitFor(() => expect(reads.mock.calls.length).toBeGreaterThanOrEqual(2));
}

/** How many streams are followed now. */
function followed(forum: Forum): () => number {
  let count = 0;
  const follow = forum.follow.bind(forum);
  vi.spyOn(forum, 'follow').mockImplementation((stream, wake) => {
    const unfollow = follow(stream, wake);
    count++;
    return () => {
      unfollow();
      count--;
    };
  });
  return () => count;
}

describe('the version of a list', () => {
  it('is the same for the same list, on every node and after a restart', async () => {
    const path = temporaryDatabase();
    const before = new House({ path });
    const ann = await before.agent();
    await openChamber(before, [ann]);
    const { version } = await todo(before)(ann);
    expect((await todo(before)(ann, 'limit=1')).version).toBe(version);
    await before.close();
    expect((await todo(new House({ path, clock: before.clock }))(ann)).version).toBe(version);
  });

  it('changes with each event of a chamber, with each phase and turn, and with each chamber', async () => {
    const { house, ann, bob, get } = await house2();
    const versions = [(await get(ann)).version];
    const note = async () => versions.push((await get(ann)).version);
    const id = await openChamber(house, [ann, bob], { turnSeconds: 60 });
    await note();
    await enterPhase(house, id, 'PROPOSAL');
    await note();
    house.clock.advance(60_000);
    await note();
    await house.must('POST', `/chambers/${id}/propose`, { by: bob, body: { name: 'Idea', ticker: 'ONE' } });
    await note();
    await openChamber(house, [ann]);
    await note();
    expect(new Set(versions).size).toBe(6);
  });
});

describe('?wait= with since', IN_TIME, () => {
  it('waits until the list differs from that version, whatever is due', async () => {
    const { house, ann, bob, get } = await house2();
    const id = await proposing(house, [ann, bob]);
    const { version, todo: due } = await get(ann);
    expect(due).toMatchObject([{ must: 'pass' }]);
    const waiting = get(ann, `${LONG}&since=${version}`);
    await pass(house, id, ann);
    const later = await waiting;
    expect(later).toMatchObject({ todo: [{ must: 'wait', turnHolder: bob.did }] });
    expect(later.version).not.toBe(version);
  });

  it('misses no change between two requests', async () => {
    const { house, ann, bob, get } = await house2();
    const id = await proposing(house, [ann, bob]);
    const { version } = await get(bob);
    await pass(house, id, ann);
    expect(await get(bob, `${LONG}&since=${version}`)).toMatchObject({ todo: [{ must: 'pass' }] });
  });

  it('responds at once to a version that is old or unknown', async () => {
    const { house, ann, get } = await house2();
    await openChamber(house, [ann]);
    expect(await get(ann, `${LONG}&since=unknown`)).toMatchObject({ todo: [{ must: 'wait' }] });
  });

  it('has no effect without wait', async () => {
    const { ann, get } = await house2();
    const { version } = await get(ann);
    expect(await get(ann, `since=${version}`)).toMatchObject({ todo: [], version });
  });

  it('responds to a change of a chamber beyond the limit, which shows in the version', async () => {
    const { house, ann, bob, get } = await house2();
    await openChamber(house, [ann]);
    const beyond = await openChamber(house, [ann]);
    const { version, todo: shown } = await get(ann, 'limit=1');
    expect(shown.map(({ chamberId }: { chamberId: number }) => chamberId)).not.toContain(beyond);
    const waiting = get(ann, `limit=1&${LONG}&since=${version}`);
    await house.must('POST', `/chambers/${beyond}/join`, { by: bob });
    const later = await waiting;
    expect(later).toMatchObject({ todo: shown, more: true });
    expect(later.version).not.toBe(version);
  });

  it('responds to a change of the last of more chambers than a response holds', async () => {
    const { house, ann, bob, get } = await house2();
    let last = 0;
    for (let count = 0; count < 201; count++) last = await openChamber(house, [ann]);
    const { version } = await get(ann);
    const waiting = get(ann, `${LONG}&since=${version}`);
    await house.must('POST', `/chambers/${last}/join`, { by: bob });
    expect((await waiting).version).not.toBe(version);
  });
});

describe('?wait= without since', IN_TIME, () => {
  it('responds at once if anything is due', async () => {
    const { house, ann, bob, get } = await house2();
    await proposing(house, [ann, bob]);
    expect(await get(ann, LONG)).toMatchObject({ todo: [{ must: 'pass' }] });
  });

  it('responds when another agent passes', async () => {
    const { house, ann, bob, get } = await house2();
    const id = await proposing(house, [ann, bob]);
    const isBegun = begun(house);
    const turn = get(bob, LONG);
    await isBegun();
    await pass(house, id, ann);
    expect(await turn).toMatchObject({ todo: [{ must: 'pass', turnHolder: bob.did }] });
  });

  it('responds when the agent itself arrives elsewhere', async () => {
    const { house, ann, bob, get } = await house2();
    const id = await proposing(house, [ann, bob]);
    const isBegun = begun(house);
    const arrival = get(bob, LONG);
    await isBegun();
    const later = await openChamber(house, [bob]);
    expect(await arrival).toMatchObject({ todo: [{ chamberId: id }, { chamberId: later }] });
  });

  it('responds with the list as it is when the time is up', async () => {
    const { house, ann, get } = await house2();
    await openChamber(house, [ann]);
    const isBegun = begun(house);
    const waiting = get(ann, 'wait=1');
    await isBegun();
    // The timer of the wait does not know the clock of the test.
    house.clock.advance(HOUR);
    expect(await waiting).toMatchObject({ todo: [{ must: 'pass', phase: 'PROPOSAL' }] });
  });

  it('sets no timer in the past for a deadline that passes while the list is read', async () => {
    const { house, ann, get } = await house2();
    await openChamber(house, [ann]);
    const list = house.store.lists.listMemberships.bind(house.store.lists);
    let reads = 0;
    vi.spyOn(house.store.lists, 'listMemberships').mockImplementation(async (...query) => {
      const memberships = await list(...query);
      // After the first read it begins to follow the chambers, and reads again.
      if (++reads === 2) house.clock.advance(1.5 * HOUR);
      return memberships;
    });
    const timers = vi.spyOn(globalThis, 'setTimeout');
    expect(await get(ann, 'wait=30')).toMatchObject({ todo: [{ phase: 'PROPOSAL' }] });
    expect(timers.mock.calls.filter(([, millis = 0]) => millis < 0)).toEqual([]);
  });
});

describe('a waiting request', IN_TIME, () => {
  it('is one of a limited number for each agent', async () => {
    const { house, ann } = await house2();
    const requests = [1, 2, 3].map(() => house.request('GET', '/me/todo?wait=1', { by: ann }));
    const statuses = (await Promise.all(requests)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 429]);
    expect(await house.request('GET', '/me/todo?wait=1', { by: ann })).toMatchObject({ status: 200 });
  });

  it('whose read fails gives its place back', async () => {
    const { house, ann } = await house2();
    const failing = vi.spyOn(house.store.lists, 'listMemberships').mockImplementation(async () => {
      throw new ForumError('FORUM_ERR_UNAVAILABLE', 'not now');
    });
    const wait = () => house.request('GET', '/me/todo?wait=1', { by: ann });
    for (let attempt = 0; attempt < 5; attempt++) expect(await wait()).toMatchObject({ status: 503 });
    failing.mockRestore();
    expect(await wait()).toMatchObject({ status: 200 });
  });

  it('follows the chambers of the list and no others, and none once it is answered', async () => {
    const { house, ann, bob, get } = await house2();
    const ids = [await openChamber(house, [ann, bob]), await openChamber(house, [ann, bob])];
    const count = followed(house.forum);
    const { version } = await get(ann);
    const waits = [get(ann, `${LONG}&since=${version}`), get(ann, `${LONG}&since=${version}`)];
    await vi.waitFor(() => expect(count()).toBe(1 + ids.length));
    house.clock.advance(5 * HOUR);
    await Promise.all([...waits, enterPhase(house, ids[0] as number, 'COMMITTED')]);
    await vi.waitFor(() => expect(count()).toBe(0));
  });
});

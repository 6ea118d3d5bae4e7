// Requests that wait at GET /me/todo for a change of the list since a version, or for a duty.
import { describe, expect, it, vi } from 'vitest';
import { ForumError } from '../../src/vocabulary/errors.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { followed } from '../kit/members.ts';
import type { Signer } from '../kit/signer.ts';
import { onSqliteOnly } from '../kit/store.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { TestService, withTwoAgents } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';

onSqliteOnly('the order of steps is that of one process');

/** Longer than a test may take, so a response that arrives in time cannot have waited this long. */
const LONG = 'wait=60';
const IN_TIME = { timeout: 40_000 };

async function open() {
  const { service, ann, bob } = await withTwoAgents({ settings: { WAITS_PER_DID_MAX: '2' } });
  return { service, ann, bob, get: todo(service) };
}

function todo(service: TestService) {
  return (by: Signer, query = '') => service.must('GET', `/me/todo${query && `?${query}`}`, { by });
}

/** Opens a chamber in PROPOSAL, in the first member's turn. */
async function proposing(service: TestService, members: readonly Signer[]): Promise<number> {
  const id = await openChamber(service, members);
  await enterPhase(service, id, 'PROPOSAL');
  return id;
}

const pass = (service: TestService, id: number, by: Signer) => service.must('POST', `/chambers/${id}/pass`, { by });

/** Resolves once a waiting request follows the agent's chambers: an earlier change would not end the wait. */
function whenFollowing({ forum }: TestService): () => Promise<void> {
  const reads = vi.spyOn(forum.todoLists, 'of');
  // The first read finds the chambers; then the request follows them and reads again.
  return () => eventually(() => expect(reads.mock.calls.length).toBeGreaterThanOrEqual(2));
}

describe('the version of a list', () => {
  it('the version of a list is the same for the same list, on every node and after a restart', async () => {
    const path = temporaryDatabase();
    const before = new TestService({ path });
    const ann = await before.agent();
    await openChamber(before, [ann]);
    const { version } = await todo(before)(ann);
    expect((await todo(before)(ann, 'limit=1')).version).toBe(version);
    await before.close();
    expect((await todo(new TestService({ path, clock: before.clock }))(ann)).version).toBe(version);
  });

  it('the version of a list changes with each event of a chamber, with each phase and turn, and with each chamber', async () => {
    const { service, ann, bob, get } = await open();
    const versions = [(await get(ann)).version];
    const note = async () => versions.push((await get(ann)).version);
    const id = await openChamber(service, [ann, bob], { turnSeconds: 60 });
    await note();
    await enterPhase(service, id, 'PROPOSAL');
    await note();
    service.clock.advance(60_000);
    await note();
    await service.must('POST', `/chambers/${id}/propose`, { by: bob, body: { name: 'Idea', ticker: 'ONE' } });
    await note();
    await openChamber(service, [ann]);
    await note();
    expect(new Set(versions).size).toBe(6);
  });
});

describe('?wait= with since', IN_TIME, () => {
  it('?wait= with since waits until the list differs from that version, even if something is due', async () => {
    const { service, ann, bob, get } = await open();
    const id = await proposing(service, [ann, bob]);
    const { version, todo: due } = await get(ann);
    expect(due).toMatchObject([{ must: 'pass' }]);
    const waiting = get(ann, `${LONG}&since=${version}`);
    await pass(service, id, ann);
    const later = await waiting;
    expect(later).toMatchObject({ todo: [{ must: 'wait', turnHolder: bob.did }] });
    expect(later.version).not.toBe(version);
  });

  it('?wait= with since misses no change between two requests', async () => {
    const { service, ann, bob, get } = await open();
    const id = await proposing(service, [ann, bob]);
    const { version } = await get(bob);
    await pass(service, id, ann);
    expect(await get(bob, `${LONG}&since=${version}`)).toMatchObject({ todo: [{ must: 'pass' }] });
  });

  it('?wait= with since responds at once to an old or unknown version', async () => {
    const { service, ann, get } = await open();
    await openChamber(service, [ann]);
    expect(await get(ann, `${LONG}&since=unknown`)).toMatchObject({ todo: [{ must: 'wait' }] });
  });

  it('?wait= with since has no effect without wait', async () => {
    const { ann, get } = await open();
    const { version } = await get(ann);
    expect(await get(ann, `since=${version}`)).toMatchObject({ todo: [], version });
  });

  it('?wait= with since responds to a change of a chamber beyond the limit, which changes the version', async () => {
    const { service, ann, bob, get } = await open();
    await openChamber(service, [ann]);
    const beyond = await openChamber(service, [ann]);
    const { version, todo: shown } = await get(ann, 'limit=1');
    expect(shown.map(({ chamberId }: { chamberId: number }) => chamberId)).not.toContain(beyond);
    const waiting = get(ann, `limit=1&${LONG}&since=${version}`);
    await service.must('POST', `/chambers/${beyond}/join`, { by: bob });
    const later = await waiting;
    expect(later).toMatchObject({ todo: shown, more: true });
    expect(later.version).not.toBe(version);
  });

  it('?wait= with since responds to a change of the last chamber beyond the limit of a response', async () => {
    const { service, ann, bob, get } = await open();
    let last = 0;
    for (let count = 0; count < 201; count++) last = await openChamber(service, [ann]);
    const { version } = await get(ann);
    const waiting = get(ann, `${LONG}&since=${version}`);
    await service.must('POST', `/chambers/${last}/join`, { by: bob });
    expect((await waiting).version).not.toBe(version);
  });
});

describe('?wait= without since', IN_TIME, () => {
  it('?wait= without since responds at once if anything is due', async () => {
    const { service, ann, bob, get } = await open();
    await proposing(service, [ann, bob]);
    expect(await get(ann, LONG)).toMatchObject({ todo: [{ must: 'pass' }] });
  });

  it('?wait= without since responds when another agent passes', async () => {
    const { service, ann, bob, get } = await open();
    const id = await proposing(service, [ann, bob]);
    const following = whenFollowing(service);
    const turn = get(bob, LONG);
    await following();
    await pass(service, id, ann);
    expect(await turn).toMatchObject({ todo: [{ must: 'pass', turnHolder: bob.did }] });
  });

  it('?wait= without since responds when the agent itself joins another chamber', async () => {
    const { service, ann, bob, get } = await open();
    const id = await proposing(service, [ann, bob]);
    const following = whenFollowing(service);
    const arrival = get(bob, LONG);
    await following();
    const later = await openChamber(service, [bob]);
    expect(await arrival).toMatchObject({ todo: [{ chamberId: id }, { chamberId: later }] });
  });

  it('?wait= without since responds with the current list when the wait times out', async () => {
    const { service, ann, get } = await open();
    await openChamber(service, [ann]);
    const following = whenFollowing(service);
    const waiting = get(ann, 'wait=1');
    await following();
    // The wait's timer does not use the test's clock.
    service.clock.advance(HOUR);
    expect(await waiting).toMatchObject({ todo: [{ must: 'pass', phase: 'PROPOSAL' }] });
  });

  it('?wait= without since sets no timer in the past for a deadline that passes while the list is read', async () => {
    const { service, ann, get } = await open();
    await openChamber(service, [ann]);
    const list = service.store.lists.listMemberships.bind(service.store.lists);
    let reads = 0;
    vi.spyOn(service.store.lists, 'listMemberships').mockImplementation(async (...query) => {
      const memberships = await list(...query);
      // The request starts to follow the chambers after the first read, and reads again.
      if (++reads === 2) service.clock.advance(1.5 * HOUR);
      return memberships;
    });
    const timers = vi.spyOn(globalThis, 'setTimeout');
    expect(await get(ann, 'wait=30')).toMatchObject({ todo: [{ phase: 'PROPOSAL' }] });
    expect(timers.mock.calls.filter(([, millis = 0]) => millis < 0)).toEqual([]);
  });
});

describe('a waiting request', IN_TIME, () => {
  it('a waiting request is rejected beyond the limit per agent', async () => {
    const { service, ann } = await open();
    const requests = [1, 2, 3].map(() => service.request('GET', '/me/todo?wait=1', { by: ann }));
    const statuses = (await Promise.all(requests)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 429]);
    expect(await service.request('GET', '/me/todo?wait=1', { by: ann })).toMatchObject({ status: 200 });
  });

  it('a waiting request releases its slot if its read fails', async () => {
    const { service, ann } = await open();
    const failing = vi.spyOn(service.store.lists, 'listMemberships').mockImplementation(async () => {
      throw new ForumError('FORUM_ERR_UNAVAILABLE', 'not now');
    });
    const wait = () => service.request('GET', '/me/todo?wait=1', { by: ann });
    for (let attempt = 0; attempt < 5; attempt++) expect(await wait()).toMatchObject({ status: 503 });
    failing.mockRestore();
    expect(await wait()).toMatchObject({ status: 200 });
  });

  it('a waiting request follows only the chambers of the list, and none after its response', async () => {
    const { service, ann, bob, get } = await open();
    const ids = [await openChamber(service, [ann, bob]), await openChamber(service, [ann, bob])];
    const count = followed(service.forum);
    const { version } = await get(ann);
    const waits = [get(ann, `${LONG}&since=${version}`), get(ann, `${LONG}&since=${version}`)];
    await eventually(() => expect(count()).toBe(1 + ids.length));
    service.clock.advance(5 * HOUR);
    await Promise.all([...waits, enterPhase(service, ids[0] as number, 'COMMITTED')]);
    await eventually(() => expect(count()).toBe(0));
  });
});

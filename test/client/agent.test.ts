import { describe, expect, it } from 'vitest';
import {
  Agent,
  type Allocation,
  ClientError,
  type CommitmentStore,
  type CommitOptions,
  ForumClient,
  memoryStore,
} from '../../src/client/index.ts';
import { fetchWithoutDate } from '../kit/fetch-without-date.ts';
import { walletOf } from '../kit/wallets.ts';
import { newAgent, newChamber, PHASE_MILLIS, REGISTRATION, sharedLiveService, WALLET } from './live-service.ts';

const live = sharedLiveService();

describe('an agent', () => {
  it('an agent takes part in a chamber from LOBBY to the reveal', async () => {
    const [ada, bob] = [await newAgent(live), await newAgent(live)];
    const { chamberId, phase } = await ada.createChamber(newChamber(live.now()));
    expect(phase).toBe('LOBBY');
    expect(await ada.joinChamber(chamberId)).toEqual({ ok: true, turnOrder: 0 });
    expect(await bob.joinChamber(chamberId)).toEqual({ ok: true, turnOrder: 1 });
    live.advance(PHASE_MILLIS);
    const { ideaId } = await ada.propose(chamberId, { name: 'Garden', ticker: 'GRDN', description: '' });
    expect(await ada.pass(chamberId)).toEqual({ eventId: 5, nextTurnAgent: bob.did });
    live.advance(PHASE_MILLIS);
    expect(await ada.debate(chamberId, { ideaId, comment: 'Who waters it?' })).toEqual({ eventId: 6 });
    live.advance(PHASE_MILLIS);
    await ada.commit(chamberId, [{ ideaId, bps: 6000 }]);
    await bob.commit(chamberId, [], { abstain: true });
    live.advance(PHASE_MILLIS);
    expect(await ada.reveal(chamberId)).toEqual({ ok: true, verified: true });
    expect(await bob.reveal(chamberId)).toEqual({ ok: true, verified: true });
    const { tally } = await ada.forum.allocations(chamberId);
    expect(tally).toEqual([{ ideaId, backers: 1, totalBps: 6000 }]);
  });

  it('an agent is identified by its seed', async () => {
    const seed = `0x${'07'.repeat(32)}` as const;
    const [one, other] = [Agent.fromSeed(live.baseUrl, seed), Agent.fromSeed(live.baseUrl, new Uint8Array(32).fill(7))];
    expect(one.did).toBe(other.did);
    await one.register(REGISTRATION);
    expect(await other.me()).toMatchObject({ did: one.did, walletAddress: WALLET, personality: {} });
  });

  it('an agent changes its personality and its wallet with signed requests', async () => {
    const agent = await newAgent(live);
    const { personality } = await agent.changePersonality({ loves: ['tea'] });
    expect(personality).toEqual({ loves: ['tea'] });
    const walletAddress = `0x${'22'.repeat(20)}`;
    await agent.register({ ...REGISTRATION, walletAddress });
    expect(await agent.me()).toMatchObject({ walletAddress });
  });

  it('an agent registers and proves its wallet in one call, with a viem account', async () => {
    const agent = Agent.generate(live.baseUrl);
    const { operatorEmail } = REGISTRATION;
    await agent.register({ wallet: walletOf(0), operatorEmail });
    expect(await agent.me()).toMatchObject({ walletAddress: walletOf(0).address, walletProven: true });
    await agent.register({ ...REGISTRATION, operatorEmail });
    expect(await agent.me()).toMatchObject({ walletAddress: WALLET, walletProven: false });
  });

  it('an agent retires its key, and nothing signed with it is accepted afterwards', async () => {
    const agent = await newAgent(live);
    expect(await agent.retire()).toEqual({ eventId: 3 });
    const refused = { code: 'FORUM_ERR_RETIRED', status: 403, retryable: false };
    await expect(agent.createChamber(newChamber(live.now()))).rejects.toMatchObject(refused);
    expect(await agent.me()).toMatchObject({ retiredAt: expect.any(String) });
  });

  it('a wallet can retire an agent’s key, and any client may send the wallet’s request', async () => {
    const agent = Agent.generate(live.baseUrl);
    await agent.register({ wallet: walletOf(0), operatorEmail: REGISTRATION.operatorEmail });
    const reader = new ForumClient(live.baseUrl);
    await expect(reader.retire(agent.did, walletOf(1))).rejects.toMatchObject({ code: 'FORUM_ERR_VALIDATION' });
    expect(await reader.retire(agent.did, walletOf(0))).toEqual({ eventId: 3 });
    await expect(agent.retire()).rejects.toMatchObject({ code: 'FORUM_ERR_CONFLICT' });
  });

  it('a rejected request throws a non-retryable error with code, status and detail', async () => {
    const agent = await newAgent(live);
    const { chamberId } = await agent.createChamber(newChamber(live.now()));
    await agent.joinChamber(chamberId);
    const error = await agent.propose(chamberId, { name: 'Early', ticker: 'EARLY' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({ code: 'FORUM_ERR_PHASE', status: 403, retryable: false });
    expect((error as ClientError).detail).toContain('LOBBY');
  });

  it.each([
    ['a seed of 31 bytes', () => Agent.fromSeed('http://127.0.0.1:1', new Uint8Array(31)), 'CLIENT_ERR_KEY'],
    ['a seed that is not hex', () => Agent.fromSeed('http://127.0.0.1:1', '0xzz'), 'CLIENT_ERR_KEY'],
    ['a base URL without a scheme', () => new ForumClient('127.0.0.1:8787'), 'CLIENT_ERR_INPUT'],
    ['a base URL with a query', () => new ForumClient('http://127.0.0.1:8787/?a=1'), 'CLIENT_ERR_INPUT'],
  ])('the client rejects %s', (_, make, code) => {
    expect(make).toThrow(expect.objectContaining({ code }));
  });

  it('an agent signs with the service’s time after an error has shown that its own clock is wrong', async () => {
    const agent = await newAgent(live, {});
    live.advance(PHASE_MILLIS);
    expect(await agent.me()).toMatchObject({ did: agent.did });
  });
});

describe('a commitment', () => {
  it('a commitment is stored before it is sent, and a second one does not replace it', async () => {
    const { agent, chamberId, sent, kept } = await committer();
    await agent.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
    expect(sent.at(-1)).toMatchObject({ path: `/chambers/${chamberId}/allocate/commit`, keptBefore: 1 });
    await expect(agent.commit(chamberId, [], { abstain: true })).rejects.toMatchObject({ code: 'FORUM_ERR_CONFLICT' });
    expect(kept()).toBe(2);
    live.advance(PHASE_MILLIS);
    expect(await agent.reveal(chamberId)).toEqual({ ok: true, verified: true });
    const { revealed } = await agent.forum.allocations(chamberId);
    expect(revealed).toMatchObject([{ did: agent.did, allocations: [{ ideaId: 'idea-1', bps: 10_000 }] }]);
  });

  it.each<[string, readonly Allocation[], CommitOptions?]>([
    ['an unknown idea', [{ ideaId: 'idea-9', bps: 1 }]],
    ['an idea listed twice', [1, 2].map((bps) => ({ ideaId: 'idea-1', bps }))],
    ['a fraction of a basis point', [{ ideaId: 'idea-1', bps: 0.5 }]],
    ['more than 10,000 basis points', [{ ideaId: 'idea-1', bps: 10_001 }]],
    ['nothing without abstain: true', []],
    ['zero basis points without abstain: true', [{ ideaId: 'idea-1', bps: 0 }]],
    ['an idea with abstain: true', [{ ideaId: 'idea-1', bps: 1 }], { abstain: true }],
  ])('a commitment to %s is rejected before it is stored or sent', async (_, allocations, options = {}) => {
    const { agent, chamberId, kept, sent } = await committer();
    await expect(agent.commit(chamberId, allocations, options)).rejects.toMatchObject({ code: 'CLIENT_ERR_INPUT' });
    expect([kept(), sent.filter(({ path }) => path.endsWith('/commit'))]).toEqual([0, []]);
  });

  it('a commitment can’t be revealed if it does not exist or its salt is in another store', async () => {
    const { agent, chamberId } = await committer();
    await expect(agent.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_COMMITMENT' });
    const seed = new Uint8Array(32).fill(9);
    const known = Agent.fromSeed(new ForumClient(live.baseUrl, live.sharedTime), seed);
    await known.register(REGISTRATION);
    const { chamberId: another } = await inCommitPhase(known);
    await known.commit(another, [], { abstain: true });
    const forgetful = Agent.fromSeed(live.baseUrl, seed);
    await expect(forgetful.reveal(another)).rejects.toMatchObject({ code: 'CLIENT_ERR_COMMITMENT' });
  });
});

/** Returns an agent before its commitment, its requests, and the number of stored openings at each request. */
async function committer() {
  const inner = memoryStore();
  let count = 0;
  const store: CommitmentStore = {
    ...inner,
    add: async (commitment, opening) => {
      await inner.add(commitment, opening);
      count++;
    },
  };
  const sent: { path: string; keptBefore: number }[] = [];
  const record = (url: string, init: RequestInit) => {
    sent.push({ path: new URL(url).pathname, keptBefore: count });
    return fetchWithoutDate(url, init);
  };
  const agent = Agent.generate(new ForumClient(live.baseUrl, { ...live.sharedTime, fetch: record }), { store });
  await agent.register(REGISTRATION);
  const { chamberId } = await inCommitPhase(agent);
  return { agent, chamberId, sent, kept: () => count };
}

async function inCommitPhase(agent: Agent) {
  const chamber = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamber.chamberId);
  live.advance(PHASE_MILLIS);
  await agent.propose(chamber.chamberId, { name: 'Garden', ticker: 'GRDN' });
  live.advance(2 * PHASE_MILLIS);
  return chamber;
}

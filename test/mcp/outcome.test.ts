// The results of a finished chamber that models see.
import { describe, expect, it } from 'vitest';
import { NO_CHAIN } from '../../src/service/compose.ts';
import type { ServiceFact } from '../../src/vocabulary/events.ts';
import type { ServicePayloads } from '../../src/vocabulary/service-payloads.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import { enterPhase, recordCommit } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { PUBLIC_URL, TestService } from '../kit/test-service.ts';
import { until } from '../kit/until.ts';
import { joinedSeat } from './seat-in-process.ts';

const IDEAS = 22;

/** This agent has revealed allocations to the second idea, and equal ones to the last two. */
async function revealed() {
  const { seat, other, chamberId } = await joinedSeat();
  const { service } = seat;
  await enterPhase(service, chamberId, 'PROPOSAL');
  for (let n = 1; n <= IDEAS; n++) {
    const body = { name: `Idea\u2028${n}`, ticker: `T${n}` };
    await service.must('POST', `/chambers/${chamberId}/propose`, { by: other, body });
  }
  await enterPhase(service, chamberId, 'ALLOCATE_COMMIT');
  const allocations = [2, IDEAS, IDEAS - 1].map((slot) => ({ ideaId: `T${slot}`, bps: slot === 2 ? 5_000 : 1_000 }));
  await seat.call('allocate', { chamberId, allocations });
  await enterPhase(service, chamberId, 'ALLOCATE_REVEAL');
  await until(async () => {
    await seat.call('todo');
    return (await service.events(chamberId)).at(-1)?.type === 'allocation.revealed';
  });
  return { seat, service, chamberId };
}

const idea = (slot: number, backers: number, totalBps: number) => ({
  ideaId: `idea-${slot}`,
  ticker: `T${slot}`,
  name: expect.stringMatching(new RegExp(`^Idea\\S* ?${slot}$`)),
  by: 'A1',
  backers,
  totalBps,
  graduated: backers > 0,
});

const linksTo = (chamberId: number) => {
  const page = `${PUBLIC_URL}/chambers/${chamberId}`;
  return { page, lines: `${page}/events` };
};

const RANKED_IDEAS = [
  idea(2, 1, 5_000),
  idea(IDEAS - 1, 1, 1_000),
  idea(IDEAS, 1, 1_000),
  idea(1, 0, 0),
  ...Array.from({ length: 16 }, (_, n) => idea(n + 3, 0, 0)),
];

it('wait returns the tally as soon as no move can change it, and says what it still waits for', async () => {
  const { seat, service, chamberId } = await revealed();
  expect((await seat.call('wait', { chamberId, seconds: 1 })).over).toEqual([]);
  service.clock.advance(HOUR);
  const [over, ...more] = (await seat.call('wait', { chamberId, seconds: 1 })).over;
  expect(more).toEqual([]);
  expect(over).toEqual({
    chamberId,
    ideas: RANKED_IDEAS,
    ideasLeftOut: IDEAS - RANKED_IDEAS.length,
    committed: 1,
    revealed: 1,
    waitsFor: `chamber ${chamberId} is waiting for its root on the chain`,
    ...linksTo(chamberId),
  });
});

/** Opens a service with a chain on which only the test acts. */
const CHAIN = {
  chainId: 31_337,
  registryAddress: `0x${'11'.repeat(20)}`,
  factoryAddress: `0x${'22'.repeat(20)}`,
  relayer: { pending: 0, failed: 0, leads: true },
};
const withChain = () =>
  new TestService({ chain: { ...NO_CHAIN, status: () => ({ ok: true, details: { chain: CHAIN } }) } });

/** A chamber whose end has been reported to the agent. */
async function told(service: TestService) {
  const { seat, chamberId } = await joinedSeat({}, { service });
  await seat.call('todo');
  await enterPhase(service, chamberId, 'ALLOCATE_REVEAL');
  service.clock.advance(HOUR);
  const { over, next } = await seat.call('wait', { seconds: 20 });
  expect(over).toMatchObject([{ chamberId, waitsFor: expect.any(String) }]);
  return { seat, chamberId, next };
}

describe('wait for a finished chamber', () => {
  it('wait for a finished chamber returns once the outcome exists', async () => {
    const service = withChain();
    const { seat, chamberId, next } = await told(service);
    expect(next).toBe(
      `Stop, or call wait with chamberId ${chamberId}, which returns once its root and its tokens are on the chain.`,
    );
    let isHeld = true;
    const waiting = seat.call('wait', { chamberId, seconds: 20 }).finally(() => {
      isHeld = false;
    });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(isHeld).toBe(true);
    await recordCommit(service.forum, chamberId);
    const [over] = (await waiting).over;
    expect(over).toMatchObject({ chamberId, merkleRoot: expect.any(String) });
    expect(over.waitsFor).toBeUndefined();
  });

  it('wait for a finished chamber returns after `seconds` at the latest, and says what it waits for', async () => {
    const { seat, chamberId } = await told(withChain());
    const startedAt = performance.now();
    const { over } = await seat.call('wait', { chamberId, seconds: 1 });
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    expect(over).toMatchObject([{ chamberId, waitsFor: expect.any(String) }]);
  });

  it('wait for a finished chamber returns at once if the service has no chain', async () => {
    const { seat, chamberId, next } = await told(new TestService());
    expect(next).toMatch(/^Stop: the service is configured without a chain/);
    const startedAt = performance.now();
    const again = await seat.call('wait', { chamberId, seconds: 20 });
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    expect(again).toMatchObject({ over: [{ chamberId }], next });
  });
});

it('wait returns the service’s outcome once the chamber is settled', async () => {
  const { seat, service, chamberId } = await revealed();
  service.clock.advance(HOUR);
  await recordCommit(service.forum, chamberId);
  const [tokenAddress, txHash] = [`0x${'77'.repeat(20)}`, `0x${'33'.repeat(32)}`] as const;
  const deployed = { tokenAddress, txHash, graduatedAt: toTimestamp(service.clock.read()) };
  for (const slot of [2, IDEAS - 1]) await record('idea.deployed', { ideaId: `idea-${slot}`, ...deployed });
  await record('idea.deploy_failed', { ideaId: `idea-${IDEAS}`, txHash: null, reason: 'reverted' });
  const { merkleRoot, committedTxHash } = await service.must('GET', `/chambers/${chamberId}/outcome`);
  const [over] = (await seat.call('wait', { chamberId, seconds: 1 })).over;
  const ends = [{ tokenAddress }, { tokenAddress }, { failure: 'reverted' }];
  expect(over).toEqual({
    chamberId,
    ideas: RANKED_IDEAS.map((each, rank) => ({ ...each, ...ends[rank] })),
    ideasLeftOut: IDEAS - RANKED_IDEAS.length,
    abstainedBps: 3_000,
    committed: 1,
    revealed: 1,
    merkleRoot,
    committedTxHash,
    ...linksTo(chamberId),
  });

  async function record<Type extends keyof ServicePayloads>(type: Type, payload: ServicePayloads[Type]) {
    await service.forum.submit({ operation: 'record', chamberId, fact: { type, payload } as ServiceFact });
  }
});

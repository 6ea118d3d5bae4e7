import { describe, expect, it } from 'vitest';
import { decideServiceFact, ServiceFactRejected } from '../../src/moves/service-facts.ts';
import type { ServiceFact } from '../../src/vocabulary/events.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import { ANN, BOB, created, joined, proposed, revealed } from '../kit/brief-events.ts';
import { type BriefEvent, fold, HOURS } from '../kit/given.ts';

const HASH = `0x${'33'.repeat(32)}` as const;
const AT = toTimestamp(HOURS.end);

const transaction = (nonce: number): RelayTransaction => ({ chainId: 1, nonce, txHash: HASH, rawTransaction: HASH });
const commitSubmitted = (nonce: number): ServiceFact => ({
  type: 'relay.commit_submitted',
  payload: transaction(nonce),
});
const chamberCommitted = (eventCount: number): ServiceFact => ({
  type: 'chamber.committed',
  payload: { merkleRoot: HASH, eventCount, txHash: HASH, blockNumber: 1, committedAt: AT },
});
const deploySubmitted = (ideaId: string, nonce: number): ServiceFact => ({
  type: 'relay.deploy_submitted',
  payload: { ideaId, ...transaction(nonce) },
});
const ideaDeployed = (ideaId: string): ServiceFact => ({
  type: 'idea.deployed',
  payload: { ideaId, tokenAddress: `0x${'44'.repeat(20)}`, txHash: HASH, graduatedAt: AT },
});
const deployFailed = (ideaId: string): ServiceFact => ({
  type: 'idea.deploy_failed',
  payload: { ideaId, txHash: null, reason: 'the ticker is taken' },
});

/** Seven moves; idea-1 graduates with one backer, and idea-2 has no backers. */
const CLOSED: readonly BriefEvent[] = [
  created(),
  ...joined(ANN, BOB),
  proposed(ANN, 1, 'ONE'),
  proposed(BOB, 2, 'TWO'),
  revealed(ANN, { 'idea-1': 6_000, 'idea-2': 0 }),
  revealed(BOB, {}),
];
const MOVES = CLOSED.length;

function decide(past: readonly ServiceFact[], fact: ServiceFact, now: number = HOURS.end): void {
  decideServiceFact(fold([...CLOSED, ...past.map((one): BriefEvent => [HOURS.end, null, one])]), fact, now);
}

const COMMITTED = [commitSubmitted(5), chamberCommitted(MOVES)];
const DEPLOYED = [...COMMITTED, deploySubmitted('idea-1', 6), ideaDeployed('idea-1')];

describe('a service fact', () => {
  it.each<readonly [string, readonly ServiceFact[], ServiceFact]>([
    ['a first commitment transaction', [], commitSubmitted(5)],
    ['a commitment transaction with a raised fee', [commitSubmitted(5)], commitSubmitted(5)],
    ['a commitment transaction at the next nonce', [commitSubmitted(5)], commitSubmitted(6)],
    ['the commitment', [commitSubmitted(5)], chamberCommitted(MOVES)],
    ['a commitment by a transaction of another account', [], chamberCommitted(MOVES)],
    ['a commitment transaction replaced after a reorganization', COMMITTED, commitSubmitted(5)],
    ['a commitment transaction signed into a nonce gap after a reorganization', COMMITTED, commitSubmitted(2)],
    ['a deployment transaction', COMMITTED, deploySubmitted('idea-1', 6)],
    ['a deployment', [...COMMITTED, deploySubmitted('idea-1', 6)], ideaDeployed('idea-1')],
    ['a deployment by a transaction of another account', COMMITTED, ideaDeployed('idea-1')],
    ['a failed deployment', COMMITTED, deployFailed('idea-1')],
    ['a deployment transaction replaced after a reorganization', DEPLOYED, deploySubmitted('idea-1', 6)],
    ['a deployment transaction signed into a nonce gap', DEPLOYED, deploySubmitted('idea-1', 4)],
  ])('a service fact may be %s', (_title, past, fact) => {
    expect(() => decide(past, fact)).not.toThrow();
  });

  it.each<readonly [string, readonly ServiceFact[], ServiceFact, string]>([
    ['a second commitment', COMMITTED, chamberCommitted(MOVES), 'chamber.committed comes after the commitment'],
    [
      'a commitment over a different number of moves',
      [],
      chamberCommitted(MOVES + 1),
      'chamber.committed has eventCount 8, but the chamber has 7 moves',
    ],
    [
      'a new commitment transaction after the commitment',
      COMMITTED,
      commitSubmitted(6),
      'relay.commit_submitted comes after the commitment and replaces no transaction',
    ],
    [
      'a commitment transaction after a commitment without one',
      [chamberCommitted(MOVES)],
      commitSubmitted(0),
      'relay.commit_submitted comes after the commitment and replaces no transaction',
    ],
    [
      'a deployment transaction before the commitment',
      [commitSubmitted(5)],
      deploySubmitted('idea-1', 6),
      'relay.deploy_submitted comes before the commitment',
    ],
    ['a deployment before the commitment', [], ideaDeployed('idea-1'), 'idea.deployed comes before the commitment'],
    [
      'a failed deployment before the commitment',
      [],
      deployFailed('idea-1'),
      'idea.deploy_failed comes before the commitment',
    ],
    [
      'a deployment transaction of an idea without backers',
      COMMITTED,
      deploySubmitted('idea-2', 6),
      'relay.deploy_submitted is about "idea-2", which did not graduate',
    ],
    [
      'a deployment of an idea without backers',
      COMMITTED,
      ideaDeployed('idea-2'),
      'idea.deployed is about "idea-2", which did not graduate',
    ],
    [
      'a failed deployment of an idea that does not exist',
      COMMITTED,
      deployFailed('idea-9'),
      'idea.deploy_failed is about "idea-9", which does not exist',
    ],
    ['a second deployment', DEPLOYED, ideaDeployed('idea-1'), 'idea.deployed comes after the outcome of idea-1'],
    [
      'a failure after the deployment',
      DEPLOYED,
      deployFailed('idea-1'),
      'idea.deploy_failed comes after the outcome of idea-1',
    ],
    [
      'a deployment after the failure',
      [...COMMITTED, deployFailed('idea-1')],
      ideaDeployed('idea-1'),
      'idea.deployed comes after the outcome of idea-1',
    ],
    [
      'a new deployment transaction after the outcome',
      DEPLOYED,
      deploySubmitted('idea-1', 7),
      'relay.deploy_submitted comes after the outcome of idea-1 and replaces no transaction',
    ],
    [
      'a deployment transaction after a failure without one',
      [...COMMITTED, deployFailed('idea-1')],
      deploySubmitted('idea-1', 0),
      'relay.deploy_submitted comes after the outcome of idea-1 and replaces no transaction',
    ],
  ])('a service fact is rejected as %s', (_title, past, fact, message) => {
    expect(() => decide(past, fact)).toThrow(new ServiceFactRejected(message));
  });

  it.each([commitSubmitted(0), chamberCommitted(MOVES), deploySubmitted('idea-1', 0), ideaDeployed('idea-1')])(
    'a service fact is rejected before the reveal deadline: $type',
    (fact) => {
      const decideEarly = () => decide([], fact, HOURS.end - 1);
      expect(decideEarly).toThrow(new ServiceFactRejected(`${fact.type} comes before the reveal deadline`));
    },
  );

  it('a service fact of an unknown type is an error', () => {
    const unknown = { type: 'relay.paused', payload: {} } as unknown as ServiceFact;
    expect(() => decide(COMMITTED, unknown)).toThrow('unhandled case {"type":"relay.paused"');
  });
});

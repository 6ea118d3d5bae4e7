import { describe, expect, it } from 'vitest';
import { evolveChamber } from '../../projections/chamber.ts';
import { evolveSettlement, isDeployed, NOT_SETTLED } from '../../projections/settlement.ts';
import { afterPass } from '../../projections/turn.ts';
import type { ChamberEvent, ServiceEvent } from '../../src/vocabulary/events.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import {
  ANN,
  BOB,
  committed,
  created,
  joined,
  joinedWith,
  passed,
  proposed,
  revealed,
  settled,
} from '../kit/brief-events.ts';
import { eventsOf, fold, HOURS } from '../kit/given.ts';

const HASH = `0x${'33'.repeat(32)}` as const;
const TRANSACTION = { chainId: 1, nonce: 4, txHash: HASH, rawTransaction: '0x00' } as const;

/** The data of a seat that lines of earlier releases lack. */
const EMPTY_SEAT = { label: null, wallet: null, walletProven: null };

describe('a chamber', () => {
  it('a chamber is the fold of its events', () => {
    const past = [
      created({ turnSeconds: 60, minBackersForGraduation: 2 }),
      ...joined(ANN, BOB),
      proposed(ANN, 1, 'ONE'),
      passed(HOURS.debate, ANN, BOB),
      committed(ANN, HASH),
      revealed(ANN, { 'idea-1': 6_000 }),
      settled,
    ];
    expect(fold(past)).toEqual({
      chamberId: 7,
      name: 'Test',
      creatorDid: ANN,
      deadlines: {
        lobbyDeadline: HOURS.proposal,
        proposalDeadline: HOURS.debate,
        debateDeadline: HOURS.commit,
        allocateCommitDeadline: HOURS.reveal,
        allocateRevealDeadline: HOURS.end,
      },
      ends: {
        lobbyDeadline: HOURS.proposal,
        proposalDeadline: HOURS.debate,
        debateDeadline: HOURS.commit,
        allocateCommitDeadline: HOURS.reveal,
        allocateRevealDeadline: HOURS.end,
      },
      endedBy: {},
      minBackersForGraduation: 2,
      topic: null,
      maxMembers: null,
      minMembers: null,
      turnSeconds: 60,
      rounds: null,
      movesPerTurn: null,
      admission: null,
      tokenChain: null,
      members: [ANN, BOB],
      seats: [EMPTY_SEAT, EMPTY_SEAT],
      ideas: [
        {
          ideaId: 'idea-1',
          slot: 1,
          ticker: 'ONE',
          name: 'Idea ONE',
          description: '',
          withheldTexts: [],
          creatorDid: ANN,
          creatorWallet: `wallet of ${ANN}`,
          versions: [{ eventId: 4, at: HOURS.proposal }],
          isWithdrawn: false,
          stances: [],
        },
      ],
      turns: { phase: 'DEBATE', count: 1, since: HOURS.debate, silent: 0, spoken: null, missed: [30, 30] },
      commitments: new Map([[ANN, HASH]]),
      reveals: new Map([[ANN, { allocations: [{ ideaId: 'idea-1', bps: 6_000 }], salt: `0x${'aa'.repeat(16)}` }]]),
      settlement: { ...NOT_SETTLED, committed: settled[2].payload, lastResultEventId: 8 },
      // The commitment on the chain is not a move.
      moveCount: 7,
      lastEventId: 8,
      lastAt: HOURS.end,
    });
  });

  it('a member’s seat has the account data of its join', () => {
    const account = { walletAddress: '0x1', walletProven: true, label: 'Ann' };
    const events = [created(), joinedWith(ANN, { turnOrder: 0, ...account }), joinedWith(BOB, { turnOrder: 1 })];
    expect(fold(events).seats).toEqual([{ label: 'Ann', wallet: '0x1', walletProven: true }, EMPTY_SEAT]);
  });

  it('a new chamber has one move, no turns and no settlement', () => {
    expect(fold([created()])).toMatchObject({
      members: [],
      ideas: [],
      turns: { phase: null, count: 0, since: 0, silent: 0, spoken: null, missed: [] },
      settlement: { commitSubmitted: [], committed: null, deployments: new Map() },
      moveCount: 1,
      lastEventId: 1,
      lastAt: HOURS.lobby,
    });
  });

  it('a chamber starts with chamber.created', () => {
    const [event] = eventsOf(joined(ANN)) as readonly [ChamberEvent];
    expect(() => evolveChamber(null, event)).toThrow('chamber 7 starts with chamber.joined');
  });

  it('a chamber can’t be folded from an event of an unknown type', () => {
    const unknown = { ...eventsOf(joined(ANN))[0], type: 'chamber.renamed' } as unknown as ChamberEvent;
    expect(() => evolveChamber(fold([created()]), unknown)).toThrow();
    expect(() => evolveSettlement(NOT_SETTLED, unknown as unknown as ServiceEvent)).toThrow();
  });

  it.each([
    ['in LOBBY', [created(), ...joined(ANN)], HOURS.lobby],
    ['without members', [created()], HOURS.proposal],
  ])('a chamber has no turn to pass %s', (_when, past, at) => {
    expect(() => afterPass(fold(past), at)).toThrow('no turn to pass in chamber 7');
  });
});

describe('the deployment of an idea', () => {
  const submitted = { type: 'relay.deploy_submitted', payload: { ideaId: 'idea-1', ...TRANSACTION } } as const;
  const deployment = (...facts: readonly (typeof submitted)[]) =>
    fold([created(), settled, ...facts.map((fact) => [HOURS.end, null, fact] as const)]).settlement.deployments;

  it('the deployment of an idea lists its transactions, oldest first', () => {
    const raised = { ...submitted, payload: { ...submitted.payload, rawTransaction: '0x01' } } as const;
    const expected = { submitted: [TRANSACTION, { ...TRANSACTION, rawTransaction: '0x01' }], outcome: null };
    expect(deployment(submitted, raised as unknown as typeof submitted)).toEqual(new Map([['idea-1', expected]]));
  });

  it('the deployment of an idea by another account has an outcome but no submitted transaction', () => {
    const payload = { ideaId: 'idea-1', tokenAddress: HASH, txHash: HASH, graduatedAt: toTimestamp(HOURS.end) };
    const state = fold([created(), settled, [HOURS.end, null, { type: 'idea.deployed', payload }]]);
    expect(state.settlement.deployments.get('idea-1')).toEqual({ submitted: [], outcome: payload });
    expect(isDeployed(payload)).toBe(true);
  });

  it('deployed, failed and pending deployments are distinct', () => {
    expect(isDeployed(null)).toBe(false);
    expect(isDeployed({ ideaId: 'idea-1', txHash: HASH, reason: 'taken' })).toBe(false);
  });
});

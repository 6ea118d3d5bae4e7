import { describe, expect, it } from 'vitest';
import { graduates, tallies } from '../../projections/graduation.ts';
import { allocationsView, chamberView, ideaViews } from '../../projections/views.ts';
import { toTimestamp } from '../../src/vocabulary/values.ts';
import {
  ANN,
  BOB,
  CYD,
  committed,
  created,
  DEADLINES_HOURLY,
  joined,
  proposed,
  revealed,
  settled,
} from '../kit/brief-events.ts';
import { type BriefEvent, fold, HOURS } from '../kit/given.ts';

const HASH = `0x${'33'.repeat(32)}` as const;
const TOKEN = `0x${'44'.repeat(20)}`;
const COMMITMENT = `0x${'55'.repeat(32)}` as const;

const REVEALED: readonly BriefEvent[] = [
  created({ minBackersForGraduation: 2 }),
  ...joined(ANN, BOB, CYD),
  proposed(ANN, 1, 'ONE'),
  proposed(BOB, 2, 'TWO'),
  committed(ANN, COMMITMENT),
  revealed(ANN, { 'idea-1': 6_000, 'idea-2': 1 }),
  revealed(BOB, { 'idea-1': 10_000, 'idea-2': 0 }),
];
const submitted = { chainId: 1, nonce: 0, txHash: HASH, rawTransaction: HASH };
const SUBMITTED: BriefEvent = [
  HOURS.end,
  null,
  { type: 'relay.deploy_submitted', payload: { ideaId: 'idea-1', ...submitted } },
];
const GRADUATED_AT = toTimestamp(HOURS.end);
const DEPLOYED: BriefEvent = [
  HOURS.end,
  null,
  {
    type: 'idea.deployed',
    payload: { ideaId: 'idea-1', tokenAddress: TOKEN, txHash: HASH, graduatedAt: GRADUATED_AT },
  },
];
const FAILED: BriefEvent = [
  HOURS.end,
  null,
  { type: 'idea.deploy_failed', payload: { ideaId: 'idea-1', txHash: HASH, reason: 'the ticker is taken' } },
];

describe('the tally', () => {
  it('the tally counts members that revealed more than 0 bps as backers', () => {
    expect([...tallies(fold(REVEALED))]).toEqual([
      ['idea-1', { backers: 2, totalBps: 16_000 }],
      ['idea-2', { backers: 1, totalBps: 1 }],
    ]);
  });

  it('ideas with enough backers graduate', () => {
    expect(graduates(fold(REVEALED)).map((idea) => idea.ideaId)).toEqual(['idea-1']);
  });
});

describe('the chamber view', () => {
  it('the chamber view has the fields of the specification, and null for unknown facts', () => {
    const state = fold([created(), ...joined(ANN, BOB), proposed(ANN, 1, 'ONE')]);
    expect(chamberView(state, HOURS.proposal)).toEqual({
      chamberId: 7,
      phase: 'PROPOSAL',
      name: 'Test',
      deadlines: DEADLINES_HOURLY,
      minBackersForGraduation: 1,
      turnSeconds: null,
      topic: null,
      maxMembers: null,
      minMembers: null,
      quorate: null,
      rounds: null,
      movesPerTurn: null,
      admission: null,
      ends: {
        lobby: DEADLINES_HOURLY.lobbyDeadline,
        proposal: DEADLINES_HOURLY.proposalDeadline,
        debate: DEADLINES_HOURLY.debateDeadline,
        commit: DEADLINES_HOURLY.allocateCommitDeadline,
        reveal: DEADLINES_HOURLY.allocateRevealDeadline,
      },
      members: [ANN, BOB],
      currentTurnAgent: ANN,
      now: toTimestamp(HOURS.proposal),
      phaseEndsAt: DEADLINES_HOURLY.proposalDeadline,
      turnEndsAt: null,
      ideas: [{ ideaId: 'idea-1', ticker: 'ONE', name: 'Idea ONE', creator: ANN, version: 1, withdrawn: false }],
      merkleRoot: null,
      committedAt: null,
      committedTxHash: null,
      commitStatus: 'open',
    });
  });

  it('the chamber view has root, time and transaction once the chamber is committed', () => {
    expect(chamberView(fold([created(), settled]), HOURS.end)).toMatchObject({
      phase: 'COMMITTED',
      currentTurnAgent: null,
      merkleRoot: `0x${'11'.repeat(32)}`,
      committedAt: toTimestamp(HOURS.end),
      committedTxHash: `0x${'22'.repeat(32)}`,
      commitStatus: 'committed',
    });
  });

  it('the chamber view reports the progress of the root', () => {
    const relayed: BriefEvent = [HOURS.end, null, { type: 'relay.commit_submitted', payload: submitted }];
    expect(chamberView(fold([created()]), HOURS.end).commitStatus).toBe('pending');
    expect(chamberView(fold([created(), relayed]), HOURS.end).commitStatus).toBe('submitted');
  });
});

describe('the views of ideas', () => {
  it('the view of an idea before its deployment has the known facts', () => {
    expect(ideaViews(fold(REVEALED))[0]).toEqual({
      ideaId: 'idea-1',
      ticker: 'ONE',
      name: 'Idea ONE',
      description: '',
      creatorDid: ANN,
      tokenAddress: null,
      chamberId: 7,
      graduatedAt: null,
      slot: 1,
      backers: 2,
      totalBps: 16_000,
      deployStatus: 'none',
      deployReason: null,
      version: 1,
      withdrawn: false,
      stances: { for: 0, against: 0, undecided: 0, outdated: 0 },
      versions: [{ version: 1, eventId: 5, ts: toTimestamp(HOURS.proposal) }],
    });
  });

  it.each([
    ['pending', [settled]],
    ['submitted', [settled, SUBMITTED]],
    ['deployed', [settled, SUBMITTED, DEPLOYED]],
    ['failed', [settled, SUBMITTED, FAILED]],
  ] as const)('the view of a graduated idea has its deployment status: %s', (status, chain) => {
    expect(ideaViews(fold([...REVEALED, ...chain])).map((idea) => idea.deployStatus)).toEqual([status, 'none']);
  });

  it('the view of an idea has the token and time of its deployment, or the reason for a failure', () => {
    const deployed = ideaViews(fold([...REVEALED, settled, SUBMITTED, DEPLOYED]))[0];
    expect(deployed).toMatchObject({ tokenAddress: TOKEN, graduatedAt: GRADUATED_AT, deployReason: null });
    const failed = ideaViews(fold([...REVEALED, settled, SUBMITTED, FAILED]))[0];
    expect(failed).toMatchObject({ tokenAddress: null, graduatedAt: null, deployReason: 'the ticker is taken' });
  });
});

describe('the view of allocations', () => {
  it('before ALLOCATE_REVEAL the view of allocations shows only the commitments', () => {
    const state = fold([created(), ...joined(ANN), proposed(ANN, 1, 'ONE'), committed(ANN, COMMITMENT)]);
    expect(allocationsView(state, HOURS.commit)).toEqual({
      chamberId: 7,
      phase: 'ALLOCATE_COMMIT',
      committed: [{ did: ANN, commitment: COMMITMENT }],
      revealed: [],
      tally: [],
    });
  });

  it('from ALLOCATE_REVEAL on the view of allocations shows reveals and the tally', () => {
    const view = allocationsView(fold(REVEALED), HOURS.reveal);
    const salt = `0x${'aa'.repeat(16)}`;
    const ofIdeas = (one: number, two: number) => [
      { ideaId: 'idea-1', bps: one },
      { ideaId: 'idea-2', bps: two },
    ];
    expect(view.revealed).toEqual([
      { did: ANN, allocations: ofIdeas(6_000, 1), salt },
      { did: BOB, allocations: ofIdeas(10_000, 0), salt },
    ]);
    expect(view.tally).toEqual([
      { ideaId: 'idea-1', backers: 2, totalBps: 16_000 },
      { ideaId: 'idea-2', backers: 1, totalBps: 1 },
    ]);
  });

  it('the view of allocations shows reveals and the tally once the chamber is committed', () => {
    const view = allocationsView(fold([...REVEALED, settled]), HOURS.end);
    expect(view).toMatchObject({ phase: 'COMMITTED', revealed: [{ did: ANN }, { did: BOB }] });
    expect(view.tally).toHaveLength(2);
  });
});

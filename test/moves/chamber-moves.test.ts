import { describe, it } from 'vitest';
import {
  ANN,
  BOB,
  CYD,
  committed,
  created,
  EVE,
  ideaPayload,
  joined,
  passed,
  proposed,
  revealed,
  settled,
} from '../kit/brief-events.ts';
import { given, HOURS, walletOf } from '../kit/given.ts';

const JOIN = { operation: 'join', body: {} } as const;
const PASS = { operation: 'pass', body: {} } as const;
const DEBATE = { operation: 'debate', body: { ideaId: null, comment: 'hm' } } as const;
const COMMIT = { operation: 'commit', body: { commitment: `0x${'c0'.repeat(32)}` } } as const;

function propose(ticker: string) {
  return { operation: 'propose', body: { name: `Idea ${ticker}`, ticker, description: '' } } as const;
}

const LOBBY = [created(), ...joined(ANN, BOB)];

describe('join', () => {
  it('join assigns turn orders from 0 in the order of joining', () => {
    given(created())
      .when(JOIN, { at: HOURS.lobby, by: ANN })
      .gives({ type: 'chamber.joined', payload: { turnOrder: 0, walletAddress: walletOf(ANN), walletProven: false } });
    given(...LOBBY)
      .when(JOIN, { at: HOURS.lobby, by: CYD })
      .gives({ type: 'chamber.joined', payload: { turnOrder: 2, walletAddress: walletOf(CYD), walletProven: false } });
  });

  it('join records a proven wallet and the label', () => {
    const account = { walletProven: true, label: 'Cyd' };
    given(...LOBBY)
      .when(JOIN, { at: HOURS.lobby, by: CYD, account })
      .gives({ type: 'chamber.joined', payload: { turnOrder: 2, walletAddress: walletOf(CYD), ...account } });
  });

  it('join rejects an agent that has already joined', () => {
    given(...LOBBY)
      .when(JOIN, { at: HOURS.lobby, by: BOB })
      .rejects('FORUM_ERR_CONFLICT', BOB);
  });

  it('join rejects members beyond the limit', () => {
    given(...LOBBY)
      .when(JOIN, { at: HOURS.lobby, by: CYD, limits: { membersMax: 2 } })
      .rejects('FORUM_ERR_CONFLICT', 'full');
  });

  it('join is rejected at the instant of the lobby deadline, and the error names both phases', () => {
    const detail = 'expected phase LOBBY, actual phase PROPOSAL, which ends at 2030-01-01T02:00:00.000Z';
    given(...LOBBY)
      .when(JOIN, { at: HOURS.proposal, by: CYD })
      .rejects('FORUM_ERR_PHASE', detail);
  });
});

describe('propose', () => {
  const past = [...LOBBY, proposed(ANN, 1, 'Abc')];

  it('propose assigns the next slot, and records the current wallet and its account event', () => {
    given(...past)
      .when(propose('XYZ'), { at: HOURS.proposal, by: ANN })
      .gives({ type: 'chamber.proposed', payload: ideaPayload(ANN, 2, 'XYZ') });
  });

  it('propose is rejected outside PROPOSAL', () => {
    given(...past)
      .when(propose('XYZ'), { at: HOURS.debate, by: ANN })
      .rejects('FORUM_ERR_PHASE', 'expected phase PROPOSAL, actual phase DEBATE');
  });

  it('propose checks membership before the turn', () => {
    given(...past)
      .when(propose('XYZ'), { at: HOURS.proposal, by: EVE })
      .rejects('FORUM_ERR_MEMBER', EVE);
  });

  it('propose is rejected out of turn, and the error names the turn holder', () => {
    given(...past)
      .when(propose('XYZ'), { at: HOURS.proposal, by: BOB })
      .rejects('FORUM_ERR_TURN', `it is the turn of ${ANN} until 2030-01-01T02:00:00.000Z, or until it passes`);
  });

  it('the error for a move out of turn says when the turn ends', () => {
    const until = (turnSeconds: number) => given(created({ turnSeconds }), ...joined(ANN, BOB));
    until(90)
      .when(propose('XYZ'), { at: HOURS.proposal + 1, by: BOB })
      .rejects('FORUM_ERR_TURN', `${ANN} until 2030-01-01T01:01:30.000Z`);
    until(4_000)
      .when(propose('XYZ'), { at: HOURS.proposal, by: BOB })
      .rejects('FORUM_ERR_TURN', `${ANN} until 2030-01-01T02:00:00.000Z`);
  });

  it('propose rejects a duplicate ticker, regardless of case', () => {
    given(...past)
      .when(propose('aBC'), { at: HOURS.proposal, by: ANN })
      .rejects('FORUM_ERR_CONFLICT', 'aBC');
  });

  it('propose rejects ideas beyond the limit', () => {
    given(...past)
      .when(propose('XYZ'), { at: HOURS.proposal, by: ANN, limits: { ideasMax: 1 } })
      .rejects('FORUM_ERR_CONFLICT', 'full');
  });

  it('propose rejects everybody in a chamber without members', () => {
    given(created()).when(propose('XYZ'), { at: HOURS.proposal, by: ANN }).rejects('FORUM_ERR_MEMBER', ANN);
  });
});

describe('debate', () => {
  const past = [...LOBBY, proposed(ANN, 1, 'ABC'), proposed(ANN, 2, 'DEF')];
  const at = HOURS.debate;

  it('debate stores comment and refinement as sent', () => {
    const refinement = { deep: [{ er: 1 }] };
    given(...past)
      .when({ operation: 'debate', body: { ideaId: 'idea-1', comment: 'yes', refinement } }, { at, by: ANN })
      .gives({ type: 'chamber.debated', payload: { ideaId: 'idea-1', comment: 'yes', refinement } });
  });

  it('debate accepts a comment without an idea', () => {
    given(...past)
      .when(DEBATE, { at, by: ANN })
      .gives({ type: 'chamber.debated', payload: { ideaId: null, comment: 'hm', refinement: null } });
  });

  it('debate rejects an unknown idea as not found', () => {
    given(...past)
      .when({ operation: 'debate', body: { ideaId: 'idea-3', comment: 'yes' } }, { at, by: ANN })
      .rejects('FORUM_ERR_NOT_FOUND', 'idea-3');
  });

  it('debate checks phase, membership and turn, in this order', () => {
    given(...past)
      .when(DEBATE, { at: HOURS.commit, by: EVE })
      .rejects('FORUM_ERR_PHASE', 'DEBATE');
    given(...past)
      .when(DEBATE, { at, by: EVE })
      .rejects('FORUM_ERR_MEMBER', EVE);
    given(...past)
      .when(DEBATE, { at, by: BOB })
      .rejects('FORUM_ERR_TURN', ANN);
  });

  it('debate does not end the turn', () => {
    given(...past, [at, ANN, { type: 'chamber.debated', payload: { ideaId: null, comment: 'one', refinement: null } }])
      .when(DEBATE, { at, by: ANN })
      .gives({ type: 'chamber.debated', payload: { ideaId: null, comment: 'hm', refinement: null } });
  });
});

describe('pass', () => {
  it.each([HOURS.proposal, HOURS.debate])('pass gives the turn to the next member at %i', (at) => {
    given(...LOBBY)
      .when(PASS, { at, by: ANN })
      .gives({ type: 'chamber.passed', payload: { nextTurnAgent: BOB } });
  });

  it('pass by the last member gives the turn to the first', () => {
    given(...LOBBY, passed(HOURS.proposal, ANN, BOB))
      .when(PASS, { at: HOURS.proposal, by: BOB })
      .gives({ type: 'chamber.passed', payload: { nextTurnAgent: ANN } });
  });

  it('pass by the only member gives the turn to the same member', () => {
    given(created(), ...joined(ANN))
      .when(PASS, { at: HOURS.proposal, by: ANN })
      .gives({ type: 'chamber.passed', payload: { nextTurnAgent: ANN } });
  });

  it.each([HOURS.lobby, HOURS.commit, HOURS.reveal])('pass is rejected outside PROPOSAL and DEBATE at %i', (at) => {
    given(...LOBBY)
      .when(PASS, { at, by: ANN })
      .rejects('FORUM_ERR_PHASE', 'expected phase PROPOSAL or DEBATE');
  });

  it('pass rejects a non-member and a member out of turn', () => {
    given(...LOBBY)
      .when(PASS, { at: HOURS.debate, by: EVE })
      .rejects('FORUM_ERR_MEMBER', EVE);
    given(...LOBBY)
      .when(PASS, { at: HOURS.debate, by: BOB })
      .rejects('FORUM_ERR_TURN', ANN);
  });
});

describe('commit', () => {
  it('commit stores the commitment as sent', () => {
    given(...LOBBY)
      .when(COMMIT, { at: HOURS.commit, by: BOB })
      .gives({ type: 'allocation.committed', payload: { commitment: COMMIT.body.commitment } });
  });

  it('commit rejects other phases, non-members and a second commitment', () => {
    given(...LOBBY)
      .when(COMMIT, { at: HOURS.reveal, by: BOB })
      .rejects('FORUM_ERR_PHASE', 'ALLOCATE_COMMIT');
    given(...LOBBY)
      .when(COMMIT, { at: HOURS.commit, by: EVE })
      .rejects('FORUM_ERR_MEMBER', EVE);
    given(...LOBBY, committed(BOB, '0x00'))
      .when(COMMIT, { at: HOURS.commit, by: BOB })
      .rejects('FORUM_ERR_CONFLICT', BOB);
  });
});

describe('reveal', () => {
  // keccak256(abi.encode(7, ANN, [("idea-1", 6000)], 0xaa × 16)).
  const salt = `0x${'aa'.repeat(16)}` as const;
  const reveal = (bps: number) =>
    ({ operation: 'reveal', body: { allocations: [{ ideaId: 'idea-1', bps }], salt } }) as const;
  const COMMITMENT = '0x5daf50671148cb1acc38f4c43ed27e7ec95d32665b6733e6e1a4f12bab02097b';
  const past = [...LOBBY, proposed(ANN, 1, 'ABC'), committed(ANN, COMMITMENT)];
  const at = HOURS.reveal;

  it('reveal accepts an allocation that hashes to the commitment', () => {
    given(...past)
      .when(reveal(6000), { at, by: ANN })
      .gives({ type: 'allocation.revealed', payload: reveal(6000).body });
  });

  it('reveal rejects any other allocation, and the error shows both hashes', () => {
    given(...past)
      .when(reveal(6001), { at, by: ANN })
      .rejects('FORUM_ERR_COMMITMENT', `the commitment is ${COMMITMENT}`);
  });

  it('reveal is rejected without a commitment', () => {
    given(...past)
      .when(reveal(6000), { at, by: BOB })
      .rejects('FORUM_ERR_COMMITMENT', BOB);
  });

  it("reveal rejects a copy of another agent's commitment", () => {
    given(...past, committed(BOB, COMMITMENT))
      .when(reveal(6000), { at, by: BOB })
      .rejects('FORUM_ERR_COMMITMENT', 'hashes to');
  });

  it('reveal rejects unknown ideas, and the error names their positions', () => {
    const bpsByIdea = { 'idea-9': 1, 'idea-1': 2, 'idea-8': 3 };
    const body = { allocations: Object.entries(bpsByIdea).map(([ideaId, bps]) => ({ ideaId, bps })), salt };
    const missing = (index: number, ideaId: string) =>
      `allocations[${index}].ideaId: "${ideaId}" not found in chamber 7`;
    given(...past)
      .when({ operation: 'reveal', body }, { at, by: ANN })
      .rejects('FORUM_ERR_VALIDATION', `${missing(0, 'idea-9')}; ${missing(2, 'idea-8')}`);
  });

  it('reveal rejects non-members, and a second reveal with any contents', () => {
    given(...past)
      .when(reveal(6000), { at, by: EVE })
      .rejects('FORUM_ERR_MEMBER', EVE);
    const unknownIdea = { allocations: [{ ideaId: 'idea-9', bps: 1 }], salt };
    for (const move of [reveal(6000), { operation: 'reveal' as const, body: unknownIdea }])
      given(...past, revealed(ANN, { 'idea-1': 6000 }))
        .when(move, { at, by: ANN })
        .rejects('FORUM_ERR_CONFLICT', ANN);
  });

  it('reveal is rejected before its phase, after its deadline and once the chamber is committed', () => {
    given(...past)
      .when(reveal(6000), { at: HOURS.commit, by: ANN })
      .rejects('FORUM_ERR_PHASE', 'actual phase ALLOCATE_COMMIT');
    given(...past)
      .when(reveal(6000), { at: HOURS.end, by: ANN })
      .rejects('FORUM_ERR_PHASE', 'is being committed');
    given(...past, settled)
      .when(reveal(6000), { at: HOURS.end, by: ANN })
      .rejects('FORUM_ERR_PHASE', /^expected phase ALLOCATE_REVEAL, actual phase COMMITTED$/);
  });
});

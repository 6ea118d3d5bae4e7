// Tests the effects of a chamber's pace on decisions: start, creation, movesPerTurn, and the next agent that a pass names.
import { describe, expect, it } from 'vitest';
import { createChamber } from '../../src/moves/create-chamber.ts';
import { parseBody } from '../../src/moves/move.ts';
import type { ErrorCode } from '../../src/vocabulary/errors.ts';
import type { JsonValue } from '../../src/vocabulary/values.ts';
import {
  ANN,
  BOB,
  type Created,
  CYD,
  created,
  DEADLINES_HOURLY,
  EVE,
  ideaPayload,
  joined,
  passed,
} from '../kit/brief-events.ts';
import { START } from '../kit/clock.ts';
import { accountOf, type BriefEvent, given, HOURS, LIMITS, noChain, outcomeOf } from '../kit/given.ts';

const TURN = 60_000;
/** The time at which the creator starts the chamber. */
const S = START + 5_000;
const STARTED: BriefEvent = [S, ANN, { type: 'chamber.started', payload: {} }];

function paced(changes: Partial<Created> = {}): BriefEvent {
  return created({ turnSeconds: 60, rounds: { proposal: 3, debate: 3 }, ...changes });
}

const pass = (at: number, did: string): BriefEvent => passed(at, did, did);
const proposed = (at: number, did: string, slot: number): BriefEvent => [
  at,
  did,
  { type: 'chamber.proposed', payload: ideaPayload(did, slot, `T${slot}`) },
];
const debated = (at: number, did: string): BriefEvent => [
  at,
  did,
  { type: 'chamber.debated', payload: { ideaId: null, comment: 'hm', refinement: null } },
];

describe('start', () => {
  const start = { operation: 'start', body: {} } as const;
  const lobby = [paced(), ...joined(ANN, BOB)];
  const plain = [created(), ...joined(ANN)];

  it('start by the creator ends LOBBY, up to the last millisecond', () => {
    for (const at of [START, HOURS.proposal - 1]) {
      given(...lobby)
        .when(start, { at, by: ANN })
        .gives({ type: 'chamber.started', payload: {} });
    }
  });

  it('start is allowed for a creator that has not joined', () => {
    given(paced(), ...joined(BOB))
      .when(start, { at: START, by: ANN })
      .gives({ type: 'chamber.started', payload: {} });
  });

  it.each<readonly [string, readonly BriefEvent[], number, string, ErrorCode]>([
    ['in a chamber without rounds', plain, START, ANN, 'FORUM_ERR_VALIDATION'],
    ['in a chamber without rounds, in any phase and by any agent', plain, HOURS.debate, EVE, 'FORUM_ERR_VALIDATION'],
    ['by a member', lobby, START, BOB, 'FORUM_ERR_FORBIDDEN'],
    ['by an agent that is not a member', lobby, START, EVE, 'FORUM_ERR_FORBIDDEN'],
    ['by another agent, before it counts the members', [paced()], START, BOB, 'FORUM_ERR_FORBIDDEN'],
    ['without members', [paced()], START, ANN, 'FORUM_ERR_CONFLICT'],
    ['at the deadline of LOBBY', lobby, HOURS.proposal, ANN, 'FORUM_ERR_PHASE'],
    ['a second time, within the same millisecond', [...lobby, STARTED], S, ANN, 'FORUM_ERR_PHASE'],
    ['by another agent after LOBBY', [...lobby, STARTED], S, BOB, 'FORUM_ERR_PHASE'],
    ['in a full chamber', [paced({ maxMembers: 2 }), ...joined(ANN, BOB)], START, ANN, 'FORUM_ERR_PHASE'],
  ])('start rejects %s', (_title, past, at, by, code) => {
    given(...past)
      .when(start, { at, by })
      .rejects(code, '');
  });

  it('start rejects a body with members', () => {
    given(...lobby)
      .when({ operation: 'start', body: { now: true } }, { at: START, by: ANN })
      .rejects('FORUM_ERR_VALIDATION', 'now');
  });

  it('a join in the same millisecond as start is rejected', () => {
    given(...lobby, STARTED)
      .when({ operation: 'join', body: {} }, { at: S, by: CYD })
      .rejects('FORUM_ERR_PHASE', 'expected phase LOBBY, actual phase PROPOSAL');
  });
});

describe('the creation of a chamber with a pace', () => {
  const sent = { name: 'Test', ...DEADLINES_HOURLY };
  const rounds = { proposal: 1, debate: 100 };

  function create(changes: Readonly<Record<string, JsonValue>>) {
    const context = { now: START, account: accountOf(ANN), openChambers: 0, limits: LIMITS, readChain: noChain };
    return outcomeOf(() => createChamber.decide(parseBody(createChamber, { json: { ...sent, ...changes } }), context));
  }

  it.each<readonly [Readonly<Record<string, JsonValue>>]>([
    [{ rounds, turnSeconds: 1 }],
    [{ rounds: { proposal: 100, debate: 1 }, turnSeconds: 60, movesPerTurn: 100 }],
    [{ movesPerTurn: 1 }],
  ])('a creation records %j', (changes) => {
    expect(create(changes)).toMatchObject(changes);
  });

  it('a creation records only the pace settings that were requested', () => {
    expect(Object.keys(create({}))).toEqual(expect.not.arrayContaining(['rounds', 'movesPerTurn']));
  });

  it.each<readonly [Readonly<Record<string, JsonValue>>, readonly string[]]>([
    [{ rounds }, ['rounds: needs turnSeconds']],
    [{ rounds: {}, turnSeconds: 60 }, ['rounds.proposal: is required', 'rounds.debate: is required']],
    [{ rounds: { proposal: 0, debate: 101 }, turnSeconds: 60 }, ['rounds.proposal: ', 'rounds.debate: ']],
    [{ rounds: { proposal: 1.5, debate: '1' }, turnSeconds: 60 }, ['rounds.proposal: ', 'rounds.debate: ']],
    [{ rounds: { ...rounds, reveal: 1 }, turnSeconds: 60 }, ['rounds: unknown member "reveal"']],
    [{ rounds: [], turnSeconds: 60 }, ['rounds']],
    [{ movesPerTurn: 1.5 }, ['movesPerTurn: ']],
    [{ movesPerTurn: null }, ['movesPerTurn: ']],
  ])('a creation rejects %j, and the error names the path', (changes, paths) => {
    const refused = create(changes);
    for (const path of paths) {
      expect(refused).toEqual({ code: 'FORUM_ERR_VALIDATION', detail: expect.stringContaining(path) });
    }
  });

  it.each<readonly [string, Partial<Created>, readonly string[]]>([
    ['no turns', { turnSeconds: null, maxMembers: 256 }, []],
    ['one turn that just fits', { turnSeconds: 3_600 }, []],
    ['one turn that does not fit', { turnSeconds: 3_601 }, ['PROPOSAL', 'DEBATE']],
    ['a round that just fits', { turnSeconds: 900, maxMembers: 4 }, []],
    ['a round that does not fit', { turnSeconds: 901, maxMembers: 4 }, ['PROPOSAL', 'DEBATE']],
    [
      'a skipped phase',
      { turnSeconds: 3_601, deadlines: { ...DEADLINES_HOURLY, debateDeadline: DEADLINES_HOURLY.proposalDeadline } },
      ['PROPOSAL'],
    ],
  ])('a creation warns of phases that are too short for a round: %s', (_title, changes, phases) => {
    const [, did, { payload }] = created(changes) as readonly [number, string, { readonly payload: Created }];
    const { warnings = [] } = createChamber.answer({ chamberId: 7, eventId: 1, did, payload }) as {
      warnings?: readonly string[];
    };
    expect(warnings.map((sentence) => sentence.split(' ')[0])).toEqual(phases);
  });
});

describe.each([
  ['with rounds', { rounds: { proposal: 100, debate: 100 } }],
  ['without rounds', {}],
])('movesPerTurn in a chamber %s:', (_title, pace) => {
  const chamber = [created({ turnSeconds: 60, movesPerTurn: 2, ...pace }), ...joined(ANN, BOB)];
  const P = HOURS.proposal;
  const propose = { operation: 'propose', body: { name: 'Idea NEW', ticker: 'NEW', description: '' } } as const;
  const debate = { operation: 'debate', body: { comment: 'hm' } } as const;
  const spent = [...chamber, proposed(P, ANN, 1), proposed(P, ANN, 2)];

  it('a turn allows movesPerTurn proposals', () => {
    given(...chamber, proposed(P, ANN, 1))
      .when(propose, { at: P, by: ANN })
      .gives({ type: 'chamber.proposed', payload: ideaPayload(ANN, 2, 'NEW') });
  });

  it('further moves in a turn are rejected until it ends, and the error says to pass', () => {
    for (const at of [P, P + TURN - 1]) {
      given(...spent)
        .when(propose, { at, by: ANN })
        .rejects('FORUM_ERR_CONFLICT', 'pass');
    }
  });

  it('the turn is checked before movesPerTurn', () => {
    given(...spent)
      .when(propose, { at: P, by: BOB })
      .rejects('FORUM_ERR_TURN', ANN);
    given(...spent)
      .when(propose, { at: P + TURN, by: ANN })
      .rejects('FORUM_ERR_TURN', BOB);
  });

  it('each turn starts with a new count of moves', () => {
    const accepted = (past: readonly BriefEvent[], at: number, by: string) =>
      given(...past)
        .when(propose, { at, by })
        .gives({ type: 'chamber.proposed', payload: ideaPayload(by, 3, 'NEW') });
    accepted([...spent, pass(P, ANN)], P, BOB);
    accepted([...spent, pass(P, ANN), pass(P, BOB)], P, ANN);
    accepted(spent, P + TURN, BOB);
    accepted(spent, P + 2 * TURN, ANN);
  });

  it('comments count for movesPerTurn, from 0 in DEBATE', () => {
    const opened = [...spent, pass(P, ANN), proposed(P, BOB, 3), pass(P, BOB)];
    const at = HOURS.debate;
    given(...opened, debated(at, ANN))
      .when(debate, { at, by: ANN })
      .gives({ type: 'chamber.debated', payload: { ideaId: null, comment: 'hm', refinement: null } });
    given(...opened, debated(at, ANN), debated(at, ANN))
      .when(debate, { at: at + 1, by: ANN })
      .rejects('FORUM_ERR_CONFLICT', 'pass');
  });
});

describe('pass in a chamber with rounds', () => {
  const three = (changes: Partial<Created> = {}) => [paced(changes), ...joined(ANN, BOB, CYD), STARTED];
  const once = { rounds: { proposal: 1, debate: 1 } };
  const annSpoke = [proposed(S, ANN, 1), pass(S, ANN), pass(S, BOB), pass(S, CYD)];
  const toDebate = [...three(), pass(S, ANN), pass(S, BOB), pass(S, CYD)];

  it.each<readonly [string, readonly BriefEvent[], number, string, string]>([
    ['the next member within a round', three(), S, ANN, BOB],
    ['the first member after the last', [...three(), ...annSpoke.slice(0, 3)], S, CYD, ANN],
    ['the first member of DEBATE, after a silent round', [...three(), ...annSpoke], S, ANN, ANN],
    ['the first member of DEBATE, after the last turn', [...three(once), ...annSpoke.slice(0, 3)], S, CYD, ANN],
    ['the member after those whose turns expired', three(), S + TURN, BOB, CYD],
    [
      'the next member in turn order at the end of DEBATE',
      [...toDebate, debated(S, ANN), ...annSpoke.slice(1)],
      S,
      ANN,
      BOB,
    ],
    [
      'the next member in turn order if DEBATE is skipped',
      [
        ...three({ deadlines: { ...DEADLINES_HOURLY, debateDeadline: DEADLINES_HOURLY.proposalDeadline } }),
        ...annSpoke,
      ],
      S,
      ANN,
      BOB,
    ],
  ])('pass in a chamber with rounds names %s', (_title, past, at, by, nextTurnAgent) => {
    given(...past)
      .when({ operation: 'pass', body: {} }, { at, by })
      .gives({ type: 'chamber.passed', payload: { nextTurnAgent } });
  });

  it('pass is rejected at the instant at which the turn expires', () => {
    given(...three())
      .when({ operation: 'pass', body: {} }, { at: S + TURN - 1, by: ANN })
      .gives({ type: 'chamber.passed', payload: { nextTurnAgent: BOB } });
    given(...three())
      .when({ operation: 'pass', body: {} }, { at: S + TURN, by: ANN })
      .rejects('FORUM_ERR_TURN', BOB);
  });
});

describe('the move after the one that completes a phase, in the same millisecond', () => {
  const COMMITMENT = `0x${'c0'.repeat(32)}` as const;
  const two = [paced(), ...joined(ANN, BOB), STARTED];
  const toCommit = [...two, pass(S, ANN), pass(S, BOB), pass(S, ANN), pass(S, BOB)];
  const committed = (did: string): BriefEvent => [
    S,
    did,
    { type: 'allocation.committed', payload: { commitment: COMMITMENT } },
  ];
  const reveal = { operation: 'reveal', body: { allocations: [], salt: `0x${'aa'.repeat(16)}` } } as const;

  it('a move in the same millisecond as the one that completes a phase is decided in the next phase', () => {
    given(...two, pass(S, ANN), pass(S, BOB))
      .when({ operation: 'propose', body: { name: 'Idea', ticker: 'NEW' } }, { at: S, by: ANN })
      .rejects('FORUM_ERR_PHASE', 'expected phase PROPOSAL, actual phase DEBATE');
    given(...toCommit)
      .when({ operation: 'commit', body: { commitment: COMMITMENT } }, { at: S, by: BOB })
      .gives({ type: 'allocation.committed', payload: { commitment: COMMITMENT } });
    given(...toCommit, committed(ANN), committed(BOB))
      .when({ operation: 'commit', body: { commitment: COMMITMENT } }, { at: S, by: ANN })
      .rejects('FORUM_ERR_PHASE', 'expected phase ALLOCATE_COMMIT, actual phase ALLOCATE_REVEAL');
  });

  it('a reveal is rejected once all committed members have revealed, or if none committed', () => {
    const shown: BriefEvent = [S, ANN, { type: 'allocation.revealed', payload: { allocations: [], salt: '0xaa' } }];
    const both = [...toCommit, committed(ANN), committed(BOB), shown, [S, BOB, shown[2]] as const];
    given(...both)
      .when(reveal, { at: S, by: BOB })
      .rejects('FORUM_ERR_PHASE', 'being committed');
    given(...toCommit)
      .when(reveal, { at: HOURS.reveal, by: ANN })
      .rejects('FORUM_ERR_PHASE', 'being committed');
  });
});

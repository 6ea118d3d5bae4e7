// Amendments, withdrawals, replies and stances: each rule, in the order of the checks.
import { describe, expect, it } from 'vitest';
import { stanceCounts } from '../../projections/ideas.ts';
import type { JsonValue } from '../../src/vocabulary/values.ts';
import { ANN, BOB, CYD, created, EVE, joined, passed, proposed } from '../kit/brief-events.ts';
import { type BriefEvent, fold, given, HOURS } from '../kit/given.ts';

const P = HOURS.proposal;
const D = HOURS.debate;
const amend = (body: JsonValue) => ({ operation: 'amend', body }) as const;
const withdraw = (ideaId: string) => ({ operation: 'withdraw', body: { ideaId } }) as const;
const debate = (body: object) => ({ operation: 'debate', body: { comment: 'hm', ...body } as JsonValue }) as const;

const amended = (at: number, did: string, ideaId: string, version: number, text: object = {}): BriefEvent => [
  at,
  did,
  { type: 'chamber.amended', payload: { ideaId, version, description: `Text ${version}`, ...text } },
];
const withdrawn = (at: number, did: string, ideaId: string): BriefEvent => [
  at,
  did,
  { type: 'chamber.withdrawn', payload: { ideaId } },
];
const polled = (did: string, stance: 'for' | 'against' | 'undecided', version = 1): BriefEvent => [
  D,
  did,
  { type: 'chamber.debated', payload: { ideaId: 'idea-1', comment: 'hm', refinement: null, stance, version } },
];

/** Events 4 and 5 are proposals, event 6 is a pass. */
const PAST = [
  created(),
  ...joined(ANN, BOB),
  proposed(ANN, 1, 'ONE'),
  proposed(ANN, 2, 'TWO'),
  passed(P, ANN, BOB),
  proposed(BOB, 3, 'SIX'),
];
const SIXTEEN = Array.from({ length: 15 }, (_, index) => amended(D, ANN, 'idea-1', index + 2));

describe('amend', () => {
  it.each([
    [{ name: 'Better' }, [], 2],
    [{ description: '' }, [amended(D, ANN, 'idea-1', 2)], 3],
    [{ name: 'Idea ONE', description: 'why' }, [], 2],
  ] as const)('amend records %j and the new version', (changes, past, version) => {
    given(...PAST, ...past)
      .when(amend({ ideaId: 'idea-1', ...changes }), { at: D, by: ANN })
      .gives({ type: 'chamber.amended', payload: { ideaId: 'idea-1', version, ...changes } });
  });

  it('amend changes only the text of the idea', () => {
    const before = fold(PAST).ideas;
    const [one, ...others] = fold([...PAST, amended(D + 5, ANN, 'idea-1', 2)]).ideas;
    const versions = [
      { eventId: 4, at: P },
      { eventId: 8, at: D + 5 },
    ];
    expect(one).toEqual({ ...before[0], description: 'Text 2', versions });
    expect(others).toEqual(before.slice(1));
  });

  const better = { ideaId: 'idea-1', name: 'Better' };
  it.each([
    ['in another phase', PAST, better, { at: P, by: BOB }, 'FORUM_ERR_PHASE'],
    ['of an agent that is not a member', PAST, better, { at: D, by: EVE }, 'FORUM_ERR_MEMBER'],
    ['out of turn', PAST, better, { at: D, by: BOB }, 'FORUM_ERR_TURN'],
    [
      'of an idea that does not exist',
      PAST,
      { ...better, ideaId: 'idea-4' },
      { at: D, by: ANN },
      'FORUM_ERR_NOT_FOUND',
    ],
    ["of another member's idea", PAST, { ...better, ideaId: 'idea-3' }, { at: D, by: ANN }, 'FORUM_ERR_FORBIDDEN'],
    [
      "of another member's idea before its withdrawal counts",
      [...PAST, withdrawn(P, BOB, 'idea-3')],
      { ...better, ideaId: 'idea-3' },
      { at: D, by: ANN },
      'FORUM_ERR_FORBIDDEN',
    ],
    [
      'without a change',
      PAST,
      { ideaId: 'idea-1', name: 'Idea ONE', description: '' },
      { at: D, by: ANN },
      'FORUM_ERR_CONFLICT',
    ],
    ['of a withdrawn idea', [...PAST, withdrawn(D, ANN, 'idea-1')], better, { at: D, by: ANN }, 'FORUM_ERR_CONFLICT'],
    ['that would make a 17th version', [...PAST, ...SIXTEEN], better, { at: D, by: ANN }, 'FORUM_ERR_CONFLICT'],
  ] as const)('amend is rejected %s', (_title, past, body, attempt, code) => {
    given(...past)
      .when(amend(body), attempt)
      .rejects(code, '');
  });

  it('amend accepts a 16th version', () => {
    given(...PAST, ...SIXTEEN.slice(0, -1))
      .when(amend(better), { at: D, by: ANN })
      .gives({ type: 'chamber.amended', payload: { ...better, version: 16 } });
  });
});

describe('withdraw', () => {
  it.each([
    ['PROPOSAL', PAST.slice(0, 5), P],
    ['DEBATE', PAST, D],
  ] as const)('withdraw permanently withdraws an idea in %s', (_phase, past, at) => {
    given(...past)
      .when(withdraw('idea-1'), { at, by: ANN })
      .gives({ type: 'chamber.withdrawn', payload: { ideaId: 'idea-1' } });
    expect(fold([...past, withdrawn(at, ANN, 'idea-1')]).ideas[0]).toMatchObject({ isWithdrawn: true, ticker: 'ONE' });
  });

  it.each([
    ['in LOBBY', PAST.slice(0, 3), 'idea-1', { at: HOURS.lobby, by: ANN }, 'FORUM_ERR_PHASE'],
    ['in ALLOCATE_COMMIT', PAST, 'idea-1', { at: HOURS.commit, by: ANN }, 'FORUM_ERR_PHASE'],
    ['of an agent that is not a member', PAST, 'idea-1', { at: D, by: EVE }, 'FORUM_ERR_MEMBER'],
    ['out of turn', PAST, 'idea-3', { at: D, by: BOB }, 'FORUM_ERR_TURN'],
    ['of an idea that does not exist', PAST, 'idea-4', { at: D, by: ANN }, 'FORUM_ERR_NOT_FOUND'],
    ["of another member's idea", PAST, 'idea-3', { at: D, by: ANN }, 'FORUM_ERR_FORBIDDEN'],
    ['a second time', [...PAST, withdrawn(D, ANN, 'idea-1')], 'idea-1', { at: D, by: ANN }, 'FORUM_ERR_CONFLICT'],
  ] as const)('withdraw is rejected %s', (_title, past, ideaId, attempt, code) => {
    given(...past)
      .when(withdraw(ideaId), attempt)
      .rejects(code, '');
  });

  it('withdraw does not free the ticker', () => {
    given(...PAST.slice(0, 5), withdrawn(P, ANN, 'idea-1'))
      .when({ operation: 'propose', body: { name: 'Again', ticker: 'one' } }, { at: P, by: ANN })
      .rejects('FORUM_ERR_CONFLICT', 'ticker: one');
  });

  it('withdraw prevents the reveal of an allocation that names the idea, even with 0 bps', () => {
    const allocations = [
      { ideaId: 'idea-3', bps: 1 },
      { ideaId: 'idea-1', bps: 0 },
      { ideaId: 'idea-9', bps: 0 },
    ];
    given(...PAST, withdrawn(D, ANN, 'idea-1'))
      .when({ operation: 'reveal', body: { allocations, salt: `0x${'aa'.repeat(16)}` } }, { at: HOURS.reveal, by: ANN })
      .rejects(
        'FORUM_ERR_VALIDATION',
        /^allocations\[1\]\.ideaId: "idea-1" \(ONE\) was withdrawn; allocations\[2\]\.ideaId: "idea-9" not found in chamber 7$/,
      );
  });
});

describe('a comment', () => {
  const said = { ideaId: null, comment: 'hm', refinement: null };

  it.each([
    ['a proposal', 4],
    ['a comment', 8],
    ['an amendment', 9],
  ])('a comment may reply to %s', (_title, replyTo) => {
    given(...PAST, polled(ANN, 'for'), amended(D, ANN, 'idea-1', 2))
      .when(debate({ replyTo }), { at: D, by: ANN })
      .gives({ type: 'chamber.debated', payload: { ...said, replyTo } });
  });

  it.each([
    ['the creation', 1],
    ['a join', 2],
    ['a pass', 6],
    ['a withdrawal', 8],
    ['an event that does not exist', 9],
    ['an event that no chamber will have', Number.MAX_SAFE_INTEGER],
  ])('a comment is rejected as a reply to %s', (_title, replyTo) => {
    given(...PAST, withdrawn(D, ANN, 'idea-1'))
      .when(debate({ replyTo }), { at: D, by: ANN })
      .rejects('FORUM_ERR_NOT_FOUND', `replyTo: event ${replyTo}`);
  });

  it('null means no reply and no stance in a comment', () => {
    given(...PAST)
      .when(debate({ replyTo: null, stance: null }), { at: D, by: ANN })
      .gives({ type: 'chamber.debated', payload: said });
  });

  it('a comment records its stance with the version of the idea', () => {
    given(...PAST, amended(D, ANN, 'idea-1', 2))
      .when(debate({ ideaId: 'idea-1', stance: 'against' }), { at: D, by: ANN })
      .gives({
        type: 'chamber.debated',
        payload: { ...said, ideaId: 'idea-1', stance: 'against', version: 2 },
      });
  });

  it.each([{}, { ideaId: null }])('a comment with a stance but without an idea is rejected: %j', (idea) => {
    given(...PAST)
      .when(debate({ ...idea, stance: 'for' }), { at: D, by: ANN })
      .rejects('FORUM_ERR_VALIDATION', 'stance: needs an ideaId');
  });

  it('a comment on a withdrawn idea is allowed, but not with a stance', () => {
    const past = [...PAST, withdrawn(D, ANN, 'idea-1')];
    given(...past)
      .when(debate({ ideaId: 'idea-1' }), { at: D, by: ANN })
      .gives({ type: 'chamber.debated', payload: { ...said, ideaId: 'idea-1' } });
    given(...past)
      .when(debate({ ideaId: 'idea-1', stance: 'for' }), { at: D, by: ANN })
      .rejects('FORUM_ERR_CONFLICT', 'withdrawn');
  });
});

describe('the straw poll', () => {
  const counts = (...past: readonly BriefEvent[]) => {
    const [idea] = fold([...PAST, ...past]).ideas;
    return idea && stanceCounts(idea);
  };

  it('the straw poll counts the latest stance of each member', () => {
    expect(counts()).toEqual({ for: 0, against: 0, undecided: 0, outdated: 0 });
    expect(counts(polled(ANN, 'against'), polled(BOB, 'undecided'), polled(ANN, 'for'))).toEqual({
      ...{ for: 1, against: 0, undecided: 1, outdated: 0 },
    });
  });

  it('the straw poll counts a stance on an earlier version as outdated, until the member takes a new one', () => {
    const past = [polled(ANN, 'for'), polled(BOB, 'against'), amended(D, ANN, 'idea-1', 2)];
    expect(counts(...past)).toEqual({ for: 0, against: 0, undecided: 0, outdated: 2 });
    expect(counts(...past, polled(BOB, 'for', 2))).toEqual({ for: 1, against: 0, undecided: 0, outdated: 1 });
  });
});

describe.each([
  ['an amendment', amended(D, ANN, 'idea-1', 2)],
  ['a withdrawal', withdrawn(D, ANN, 'idea-1')],
])('%s', (title, change) => {
  const turns = { turnSeconds: 60, rounds: { proposal: 1, debate: 9 }, movesPerTurn: 1 };
  const past = [created(turns), ...joined(ANN, BOB), proposed(ANN, 1, 'ONE')];
  const debateAt = fold(past).ends.proposalDeadline;
  const at = (event: BriefEvent): BriefEvent => [debateAt, event[1], event[2]];

  it(`${title} does not end the turn and counts for movesPerTurn`, () => {
    given(...past, at(change))
      .when(debate({}), { at: debateAt, by: ANN })
      .rejects('FORUM_ERR_CONFLICT', 'pass');
    given(
      ...past,
      at([D, ANN, { type: 'chamber.debated', payload: { ideaId: null, comment: 'hm', refinement: null } }]),
    )
      .when(change[2].type === 'chamber.amended' ? amend({ ideaId: 'idea-1', name: 'N' }) : withdraw('idea-1'), {
        at: debateAt,
        by: ANN,
      })
      .rejects('FORUM_ERR_CONFLICT', 'pass');
  });

  it(`${title} prevents the early end of the phase`, () => {
    const passes = [passed(debateAt, ANN, BOB), passed(debateAt, BOB, ANN)];
    expect(fold([...past, ...passes]).ends.debateDeadline).toBe(debateAt);
    expect(fold([...past, at(change), ...passes]).ends.debateDeadline).toBeGreaterThan(debateAt);
  });
});

describe('minMembers', () => {
  const asks = (minMembers: number, changes = {}) => created({ minMembers, ...changes });
  const rounds = { turnSeconds: 60, rounds: { proposal: 1, debate: 1 } };

  it.each([
    ['without rounds', {}],
    ['with rounds', rounds],
  ])('a chamber with fewer members than minMembers ends with LOBBY, %s', (_title, pace) => {
    for (const members of [[], [ANN]]) {
      const state = fold([asks(2, pace), ...joined(...members)]);
      expect(new Set(Object.values(state.ends))).toEqual(new Set([P]));
      given(asks(2, pace), ...joined(...members))
        .when({ operation: 'propose', body: { name: 'N', ticker: 'T' } }, { at: P, by: ANN })
        .rejects(
          'FORUM_ERR_PHASE',
          `expected phase PROPOSAL, actual phase ALLOCATE_REVEAL, which has ended: the chamber did not go ahead: ${members.length} of at least 2 members had joined when LOBBY ended`,
        );
    }
  });

  it('the error for a reveal says that the chamber lacked members', () => {
    given(asks(2), ...joined(ANN))
      .when({ operation: 'reveal', body: { allocations: [], salt: `0x${'aa'.repeat(16)}` } }, { at: P, by: ANN })
      .rejects('FORUM_ERR_PHASE', 'did not go ahead');
  });

  it('minMembers changes nothing in a chamber with enough members', () => {
    const { ends, deadlines } = fold([asks(2), ...joined(ANN, BOB)]);
    expect(ends).toEqual(deadlines);
    const withRounds = (past: BriefEvent) => fold([past, ...joined(ANN, BOB)]).ends;
    expect(withRounds(asks(2, rounds))).toEqual(withRounds(created(rounds)));
  });

  it('start requires minMembers members', () => {
    const start = { operation: 'start', body: {} } as const;
    given(asks(3, rounds), ...joined(ANN, BOB))
      .when(start, { at: HOURS.lobby, by: ANN })
      .rejects('FORUM_ERR_CONFLICT', 'has 2 of at least 3 members');
    given(asks(3, rounds), ...joined(ANN, BOB, CYD))
      .when(start, { at: HOURS.lobby, by: ANN })
      .gives({ type: 'chamber.started', payload: {} });
  });
});

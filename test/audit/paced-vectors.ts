// Vectors of a chamber with rounds, derived from its sample log: phases end early once no further event is possible.
import { readFileSync } from 'node:fs';
import { START } from '../kit/clock.ts';
import { Signer } from '../kit/signer.ts';
import { type ForgedMove, type Line, parse, rechained, signedLine, toText } from './forge.ts';
import { payloadOf, revealOf } from './forgeries.ts';
import { ALLOCATIONS, ANN, BOB, CAT } from './sample.ts';

type Row = readonly [title: string, text: string, ...eventIds: number[]];

const text = readFileSync(new URL('../../fixtures/logs/chamber-with-rounds.ndjson', import.meta.url), 'utf8');
const records = parse(text.trimEnd().split('\n'));
const MOVES = 26;
const moves = records.slice(0, MOVES);
const EVE = new Signer(Buffer.alloc(32, 4));

const OTHER_WALLET = `0x${'11'.repeat(20)}`;
/** An account line binds exactly one wallet. */
const walletOf = ({ did }: Signer) =>
  moves.filter((record) => record['did'] === did && record['type'] === 'chamber.joined').map(payloadOf)[0]?.[
    'walletAddress'
  ] ?? OTHER_WALLET;

const STARTED = 5;
/** The last pass of PROPOSAL: the next turn times out, and DEBATE begins. */
const LAST_PROPOSAL = 13;
const DEBATE_BEGINS = START + 73_000;
const FIRST_COMMENT = 14;
const LAST_PASS = 20;
const LAST_COMMITMENT = 23;
const COMMITTED = 28;

const rewritten = (lines: readonly Line[]) => toText(rechained(lines));
const atOf = (eventId: number) => Date.parse(String(records[eventId - 1]?.['ts']));
/** The moves up to an event, followed by the given move. */
const then = (eventId: number, move: ForgedMove) => rewritten([...moves.slice(0, eventId), signedLine(move)]);

const debate = (by: Signer, at: number): ForgedMove => ({
  ...{ by, at, type: 'chamber.debated', path: 'debate', body: { comment: 'Well.' } },
  payload: { comment: 'Well.', ideaId: null, refinement: null },
});
const start = (by: Signer, at: number): ForgedMove => ({ by, at, type: 'chamber.started', path: 'start', payload: {} });
const join = (by: Signer, at: number): ForgedMove => ({
  ...{
    by,
    at,
    type: 'chamber.joined',
    path: 'join',
    payload: { turnOrder: 3, walletAddress: OTHER_WALLET, walletProven: false },
  },
});
const pass = (by: Signer, at: number, { did }: Signer): ForgedMove => ({
  ...{ by, at, type: 'chamber.passed', path: 'pass', payload: { nextTurnAgent: did } },
});
const SHARE = { name: 'Shares', ticker: 'SHARE', description: '' };
const propose = (by: Signer, at: number, slot: number): ForgedMove => ({
  ...{ by, at, type: 'chamber.proposed', path: 'propose', body: SHARE },
  payload: { ...SHARE, ideaId: `idea-${slot}`, slot, creatorWallet: walletOf(by) },
});
const commit = (by: Signer, at: number): ForgedMove => {
  const { commit: body } = ALLOCATIONS.bob;
  return { by, at, type: 'allocation.committed', path: 'allocate/commit', body, payload: body };
};
const reveal = (at: number): ForgedMove => ({
  ...{ by: ANN, at, type: 'allocation.revealed', path: 'allocate/reveal', ...revealOf(ALLOCATIONS.ann) },
});

/** The whole log with members of one record replaced. */
const withMembers = (eventId: number, members: Line) =>
  rewritten(records.map((record, index) => (index === eventId - 1 ? { ...record, ...members } : record)));
const committedAt = (millis: number) =>
  withMembers(COMMITTED, {
    payload: { ...payloadOf(records[COMMITTED - 1] as Line), committedAt: new Date(millis).toISOString() },
  });

export const SOUND: readonly Row[] = [
  ['with rounds: the whole log', text],
  ['with rounds: the moves alone', rewritten(moves)],
  ['a proposal in the millisecond of the start', then(STARTED, propose(ANN, atOf(STARTED), 1))],
  ['a proposal in the last millisecond of the last turn', then(LAST_PROPOSAL, propose(CAT, DEBATE_BEGINS - 1, 4))],
  ['a comment in the millisecond in which the last turn timed out', then(LAST_PROPOSAL, debate(ANN, DEBATE_BEGINS))],
  ['a commitment in the millisecond of the last silent turn', then(LAST_PASS, commit(BOB, atOf(LAST_PASS)))],
  ['a reveal in the millisecond of the last commitment', then(LAST_COMMITMENT, reveal(atOf(LAST_COMMITMENT)))],
  ['a commitment in a block 15 s older than the last reveal', committedAt(atOf(MOVES) - 15_000)],
];

export const UNDECIDED: readonly Row[] = [
  ['a commitment in a block 16 s older than the last reveal', committedAt(atOf(MOVES) - 16_000)],
];

export const BROKEN: readonly Row[] = [
  ['a start by an agent other than the creator', then(STARTED - 1, start(BOB, atOf(STARTED))), STARTED],
  ['a start without a member', then(1, start(ANN, atOf(2))), 2],
  ['a second start', then(STARTED, start(ANN, atOf(STARTED))), STARTED + 1],
  ['a member who joins after the start', then(STARTED, join(EVE, atOf(STARTED))), STARTED + 1],
  ['the start omitted', rewritten(moves.toSpliced(STARTED - 1, 1)), STARTED],
  ['a second proposal in a turn of one', then(6, propose(ANN, atOf(6) + 1, 2)), 7],
  ['a second comment in a turn of one', then(FIRST_COMMENT, debate(ANN, atOf(FIRST_COMMENT) + 1)), FIRST_COMMENT + 1],
  ['a comment before the last turn timed out', then(LAST_PROPOSAL, debate(ANN, DEBATE_BEGINS - 1)), FIRST_COMMENT],
  ['a proposal after the last turn timed out', then(LAST_PROPOSAL, propose(CAT, DEBATE_BEGINS, 4)), FIRST_COMMENT],
  ['a pass after the last turn timed out', then(LAST_PROPOSAL, pass(CAT, DEBATE_BEGINS, ANN)), FIRST_COMMENT],
  ['a commitment before the last silent turn', then(LAST_PASS - 1, commit(BOB, atOf(LAST_PASS))), LAST_PASS],
  ['a comment after the last silent turn', then(LAST_PASS, debate(CAT, atOf(LAST_PASS))), LAST_PASS + 1],
  ['a reveal before the last commitment', then(LAST_COMMITMENT - 1, reveal(atOf(LAST_COMMITMENT))), LAST_COMMITMENT],
  ['a pass that names the next member instead of the debate’s first', namesNextMember(), LAST_PROPOSAL + 1],
  ['rounds that the creator did not request', withRounds({ proposal: 2, debate: 4 }), 1],
  [
    'a transaction while a reveal is outstanding',
    rewritten([...moves.slice(0, MOVES - 1), records[MOVES] as Line]),
    MOVES,
  ],
];

/** CAT ends PROPOSAL with a pass whose payload names BOB for DEBATE's first turn. */
function namesNextMember(): string {
  return then(LAST_PROPOSAL, pass(CAT, DEBATE_BEGINS - 1, BOB));
}

function withRounds(rounds: Line): string {
  const [created] = records as [Line];
  return rewritten([{ ...created, payload: { ...payloadOf(created), rounds } }, ...moves.slice(1)]);
}

// Forged exports that the auditor must report: signed moves that break a rule, wrong evidence, and altered chambers.
import { readFileSync } from 'node:fs';
import { chamberMoves } from '../../src/moves/registry.ts';
import { HOUR, START } from '../kit/clock.ts';
import { Signer } from '../kit/signer.ts';
import { type ForgedMove, type Line, parse, rechained, signedLine, toText } from './forge.ts';
import { ALLOCATIONS, ANN, BOB, CAT } from './sample.ts';

export const text = readFileSync(new URL('../../fixtures/logs/chamber.ndjson', import.meta.url), 'utf8');
export const records = parse(text.trimEnd().split('\n'));
export const MOVES = 16;
export const moves = records.slice(0, MOVES);
const EVE = new Signer(Buffer.alloc(32, 4));

/** The export's moves, with the line inserted as event `eventId`. */
export function withLine(eventId: number, line: Line): string {
  return toText(rechained(moves.toSpliced(eventId - 1, 0, line)));
}

const debate = (comment: string) => ({ body: { comment }, payload: { comment, ideaId: null, refinement: null } });
export const revealOf = ({ reveal }: typeof ALLOCATIONS.cat) =>
  ({ body: reveal, payload: reveal }) as unknown as Content;
const sameOf = (payload: Line): Content => ({ body: payload, payload });
const [, ANN_JOINED, BOB_JOINED] = moves.map(({ payload }) => payload as Line);
const joining = { payload: { turnOrder: 3, walletAddress: `0x${'11'.repeat(20)}`, walletProven: false } };
const joiningAgain = { payload: { ...BOB_JOINED, turnOrder: 3 } };
const wall = { name: 'W', ticker: 'WALL2', description: '' };
const proposal = {
  body: wall,
  payload: { ...wall, ideaId: 'idea-4', slot: 4, creatorWallet: ANN_JOINED?.['walletAddress'] ?? null },
};
const again = { ...wall, ticker: 'soil' };
const secondIdea = { body: again, payload: { ...proposal.payload, ...again, ideaId: 'idea-2', slot: 2 } };
const onIdea = (ideaId: string) => ({
  body: { comment: 'Hi', ideaId },
  payload: { ...debate('Hi').payload, ideaId },
});
const other = { allocations: [{ ideaId: 'idea-3', bps: 9_999 }], salt: ALLOCATIONS.cat.reveal.salt };

type Content = Pick<ForgedMove, 'body' | 'payload'>;

/** A forged move: its event id, the broken rule, its agent, its path, and its hour. */
type Row = readonly [title: string, eventId: number, code: string, by: Signer, path: string, hour: number, Content];

const ROWS: readonly Row[] = [
  ['an admission to a chamber without a list', 5, 'VALIDATION', ANN, 'admit', 1 / 60, sameOf({ did: EVE.did })],
  ['a start of a chamber without rounds', 5, 'VALIDATION', ANN, 'start', 1 / 60, { payload: {} }],
  ['a proposal whose ticker is taken in different letter case', 6, 'CONFLICT', ANN, 'propose', 1, secondIdea],
  ['a comment on an idea that does not exist', 9, 'NOT_FOUND', ANN, 'debate', 2, onIdea('idea-9')],
  ['a commitment by a non-member', 15, 'MEMBER', EVE, 'allocate/commit', 3.5, sameOf(ALLOCATIONS.ann.commit)],
  ['a second reveal', 17, 'CONFLICT', ANN, 'allocate/reveal', 4.5, revealOf(ALLOCATIONS.ann)],
  ['a comment by a non-member', 9, 'MEMBER', EVE, 'debate', 2, debate('Hi')],
  ['a comment out of turn', 9, 'TURN', CAT, 'debate', 2, debate('Hi')],
  ['a pass out of turn', 6, 'TURN', BOB, 'pass', 1, { payload: { nextTurnAgent: CAT.did } }],
  ['a proposal in the debate', 9, 'PHASE', ANN, 'propose', 2, proposal],
  ['a member who joins after the lobby', 5, 'PHASE', EVE, 'join', 1, joining],
  ['a member who joins twice', 5, 'CONFLICT', BOB, 'join', 1 / 60, joiningAgain],
  ['a second commitment', 15, 'CONFLICT', ANN, 'allocate/commit', 3.5, sameOf(ALLOCATIONS.ann.commit)],
  ['an early reveal', 15, 'PHASE', CAT, 'allocate/reveal', 3.5, revealOf(ALLOCATIONS.cat)],
  ['a late reveal', 17, 'PHASE', CAT, 'allocate/reveal', 5, revealOf(ALLOCATIONS.cat)],
  ['a reveal that does not match', 17, 'COMMITMENT', CAT, 'allocate/reveal', 4.5, sameOf(other)],
  ['a reveal without a commitment', 17, 'MEMBER', EVE, 'allocate/reveal', 4.5, revealOf(ALLOCATIONS.cat)],
];

export const ILLEGAL = ROWS.map(([title, eventId, code, by, path, hour, content]) => ({
  ...{ title, eventId, code, by, path, at: START + hour * HOUR, ...content },
  type: Object.values(chamberMoves).find((move) => move.path.endsWith(`/:id/${path}`))?.event ?? '',
}));

export const honest = {
  by: CAT,
  type: 'chamber.debated',
  path: 'debate',
  at: START + 2.7 * HOUR,
  ...debate('Still no walls.'),
};
export const AFTER_HONEST = 12;

export const requestOf = ({ request }: Line) => request as Line;
export const payloadOf = ({ payload }: Line) => payload as Line;

export const line = signedLine(honest);
export const request = requestOf(line);
const signedBy = (signer: Signer) => requestOf(signedLine({ ...honest, by: signer }));

/** Lines with wrong evidence, and the checks that each of them breaks. */
export const WRONG_EVIDENCE: readonly [title: string, forged: Line, checks: readonly string[]][] = [
  ['no signature at all', { ...line, request: null }, ['signature']],
  ['a signature by a different agent', { ...line, request: signedBy(EVE) }, ['signature']],
  ['a DID that did not sign', { ...line, did: BOB.did }, ['signature', 'rules']],
  [
    'a body that was not signed',
    { ...line, request: { ...request, body: '{"comment":"Walls!"}' } },
    ['digest', 'payload'],
  ],
  ['a payload that was not requested', { ...line, payload: { ...payloadOf(line), comment: 'Walls!' } }, ['payload']],
  ['a method that was not signed', { ...line, request: { ...request, method: 'PUT' } }, ['signature', 'target']],
  ['a request to a different chamber', signedLine({ ...honest, path: '../2/debate' }), ['target']],
  ['a request for a different operation', signedLine({ ...honest, path: 'pass' }), ['target']],
  ['a request to an address with a user name', signedLine({ ...honest, origin: 'https://x@forum.test' }), ['target']],
  ['a request to an address with a fragment', signedLine({ ...honest, path: 'debate#' }), ['target']],
  ['a request path with a tab', signedLine({ ...honest, path: 'deb\tate' }), ['target']],
  ['a request to an FTP address', signedLine({ ...honest, origin: 'ftp://forum.test' }), ['target']],
];

/** The whole export with one altered payload. */
export function altered(eventId: number, payload: Line): string {
  return toText(
    rechained(
      records.map((record, index) =>
        index === eventId - 1 ? { ...record, payload: { ...payloadOf(record), ...payload } } : record,
      ),
    ),
  );
}

function uppercased(index: number): string {
  const { rawTransaction } = payloadOf(records[index] as Line);
  return `0x${String(rawTransaction).slice(2).toUpperCase()}`;
}

/** Altered payloads, and the check that each of them breaks. */
export const ALTERED: readonly [title: string, eventId: number, payload: Line, check: string][] = [
  ['a root that is not the root of the moves', 19, { merkleRoot: `0x${'12'.repeat(32)}` }, 'root'],
  ['a count that is not the number of moves', 19, { eventCount: 15 }, 'root'],
  ['a token for an idea that did not graduate', 21, { ideaId: 'idea-3' }, 'service-events'],
  [
    'a token whose address has a wrong checksum',
    21,
    { tokenAddress: '0xA16E02E87b7454126E5E10d957A927A7F5B5d2be' },
    'form',
  ],
  ['a failure of an idea that has its token', 22, { ideaId: 'idea-1' }, 'service-events'],
  ['a transaction with a different nonce', 17, { nonce: 8 }, 'transactions'],
  ['a transaction with a different chain id', 18, { chainId: 1 }, 'transactions'],
  ['a transaction in uppercase', 17, { rawTransaction: uppercased(16) }, 'form'],
];

/** All forgeries as texts of files. */
export const FORGERIES: readonly { readonly title: string; readonly text: string }[] = [
  ...ILLEGAL.map(({ title, eventId, code: _, ...move }) => ({ title, text: withLine(eventId, signedLine(move)) })),
  ...WRONG_EVIDENCE.map(([title, forged]) => ({ title, text: withLine(AFTER_HONEST, forged) })),
  ...ALTERED.map(([title, eventId, payload]) => ({ title, text: altered(eventId, payload) })),
  {
    title: 'a reused signature',
    text: toText(rechained(moves.toSpliced(AFTER_HONEST - 1, 0, line, line))),
  },
  { title: 'a pass omitted', text: toText(rechained(records.toSpliced(5, 1))) },
];

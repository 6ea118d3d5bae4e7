// Forged exports, each of which the auditor names: well-signed moves that break a rule, wrong evidence, and altered chambers.
import { readFileSync } from 'node:fs';
import { HOUR, START } from '../kit/clock.ts';
import { Signer } from '../kit/signer.ts';
import { type ForgedMove, type Line, parse, rechained, signedLine, toText } from './forge.ts';
import { ALLOCATIONS, ANN, BOB, CAT } from './sample.ts';

export const text = readFileSync(new URL('../../fixtures/logs/chamber.ndjson', import.meta.url), 'utf8');
export const records = parse(text.trimEnd().split('\n'));
const MOVES = 16;
export const moves = records.slice(0, MOVES);
const EVE = new Signer(Buffer.alloc(32, 4));

/** The export's moves alone, with a line put in as event `eventId`. */
export function withLine(eventId: number, line: Line): string {
  return toText(rechained(moves.toSpliced(eventId - 1, 0, line)));
}

const debate = (comment: string) => ({
  body: { comment },
  payload: { comment, ideaId: null, refinement: null },
});
export const revealOf = ({ reveal }: typeof ALLOCATIONS.cat) =>
  ({ body: reveal, payload: reveal }) as unknown as Pick<ForgedMove, 'body' | 'payload'>;
const wall = { name: 'W', ticker: 'WALL2', description: '' };
const proposal = {
  body: wall,
  payload: { ...wall, ideaId: 'idea-4', slot: 4, creatorWallet: `0x${'11'.repeat(20)}`, accountEventId: 1 },
};
const other = { allocations: [{ ideaId: 'idea-3', bps: 9_999 }], salt: ALLOCATIONS.cat.reveal.salt };

export interface Illegal extends Omit<ForgedMove, 'path'> {
  readonly title: string;
  readonly eventId: number;
  readonly path: string;
  readonly code: string;
}

export const ILLEGAL: readonly Illegal[] = [
  {
    title: 'a comment by a non-member',
    eventId: 9,
    by: EVE,
    type: 'chamber.debated',
    path: 'debate',
    at: START + 2 * HOUR,
    ...debate('Hi'),
    code: 'MEMBER',
  },
  {
    title: 'a comment out of turn',
    eventId: 9,
    by: CAT,
    type: 'chamber.debated',
    path: 'debate',
    at: START + 2 * HOUR,
    ...debate('Hi'),
    code: 'TURN',
  },
  {
    title: 'a pass out of turn',
    eventId: 6,
    by: BOB,
    type: 'chamber.passed',
    path: 'pass',
    at: START + HOUR,
    payload: { nextTurnAgent: CAT.did },
    code: 'TURN',
  },
  {
    title: 'a proposal in the debate',
    eventId: 9,
    by: ANN,
    type: 'chamber.proposed',
    path: 'propose',
    at: START + 2 * HOUR,
    ...proposal,
    code: 'PHASE',
  },
  {
    title: 'a member who joins after the lobby',
    eventId: 5,
    by: EVE,
    type: 'chamber.joined',
    path: 'join',
    at: START + HOUR,
    payload: { turnOrder: 3, accountEventId: 1 },
    code: 'PHASE',
  },
  {
    title: 'a member who joins twice',
    eventId: 5,
    by: BOB,
    type: 'chamber.joined',
    path: 'join',
    at: START + 60_000,
    payload: { turnOrder: 3, accountEventId: 1 },
    code: 'CONFLICT',
  },
  {
    title: 'a second commitment',
    eventId: 15,
    by: ANN,
    type: 'allocation.committed',
    path: 'allocate/commit',
    at: START + 3.5 * HOUR,
    body: ALLOCATIONS.ann.commit,
    payload: ALLOCATIONS.ann.commit,
    code: 'CONFLICT',
  },
  {
    title: 'an early reveal',
    eventId: 15,
    by: CAT,
    type: 'allocation.revealed',
    path: 'allocate/reveal',
    at: START + 3.5 * HOUR,
    ...revealOf(ALLOCATIONS.cat),
    code: 'PHASE',
  },
  {
    title: 'a late reveal',
    eventId: 17,
    by: CAT,
    type: 'allocation.revealed',
    path: 'allocate/reveal',
    at: START + 5 * HOUR,
    ...revealOf(ALLOCATIONS.cat),
    code: 'PHASE',
  },
  {
    title: 'a reveal that does not match',
    eventId: 17,
    by: CAT,
    type: 'allocation.revealed',
    path: 'allocate/reveal',
    at: START + 4.5 * HOUR,
    body: other,
    payload: other,
    code: 'COMMITMENT',
  },
  {
    title: 'a reveal without a commitment',
    eventId: 17,
    by: EVE,
    type: 'allocation.revealed',
    path: 'allocate/reveal',
    at: START + 4.5 * HOUR,
    ...revealOf(ALLOCATIONS.cat),
    code: 'MEMBER',
  },
];

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

/** With the checks that each breaks. */
export const WRONG_EVIDENCE: readonly [title: string, forged: Line, checks: readonly string[]][] = [
  ['no signature at all', { ...line, request: null }, ['signature']],
  ['a signature by somebody else', { ...line, request: signedBy(EVE) }, ['signature']],
  ['a DID that did not sign', { ...line, did: BOB.did }, ['signature', 'rules']],
  [
    'a body that was not signed',
    { ...line, request: { ...request, body: '{"comment":"Walls!"}' } },
    ['digest', 'payload'],
  ],
  [
    'a payload that was not requested',
    { ...line, payload: { comment: 'Walls!', ideaId: null, refinement: null } },
    ['payload'],
  ],
  ['a method that was not signed', { ...line, request: { ...request, method: 'PUT' } }, ['signature', 'target']],
  ['a request to another chamber', signedLine({ ...honest, path: '../2/debate' }), ['target']],
  ['a request for another operation', signedLine({ ...honest, path: 'pass' }), ['target']],
];

/** The whole export, one of its payloads altered. */
export function altered(eventId: number, payload: Line): string {
  return toText(
    rechained(
      records.map((record, index) =>
        index === eventId - 1 ? { ...record, payload: { ...payloadOf(record), ...payload } } : record,
      ),
    ),
  );
}

/** With the check that each breaks. */
export const ALTERED: readonly [title: string, eventId: number, payload: Line, check: string][] = [
  ['a root that is not the moves’', 19, { merkleRoot: `0x${'12'.repeat(32)}` }, 'root'],
  ['a count that is not the moves’', 19, { eventCount: 15 }, 'root'],
  ['a commitment by a transaction that was never logged', 19, { txHash: `0x${'12'.repeat(32)}` }, 'transactions'],
  ['a token for an idea that did not graduate', 21, { ideaId: 'idea-3' }, 'service-events'],
  [
    'a token whose address has a wrong checksum',
    21,
    { tokenAddress: '0xA16E02E87b7454126E5E10d957A927A7F5B5d2be' },
    'form',
  ],
  ['a failure for an idea that has its token', 22, { ideaId: 'idea-1' }, 'service-events'],
  ['a transaction of another nonce', 17, { nonce: 8 }, 'transactions'],
  ['a transaction of another chain', 18, { chainId: 1 }, 'transactions'],
];

/** All of them as files. */
export const FORGERIES: readonly { readonly title: string; readonly text: string }[] = [
  ...ILLEGAL.map(({ title, eventId, code: _, ...move }) => ({ title, text: withLine(eventId, signedLine(move)) })),
  ...WRONG_EVIDENCE.map(([title, forged]) => ({ title, text: withLine(AFTER_HONEST, forged) })),
  ...ALTERED.map(([title, eventId, payload]) => ({ title, text: altered(eventId, payload) })),
  {
    title: 'a signature that is used again',
    text: toText(rechained(moves.toSpliced(AFTER_HONEST - 1, 0, line, line))),
  },
  { title: 'a pass left out', text: toText(rechained(records.toSpliced(5, 1))) },
];

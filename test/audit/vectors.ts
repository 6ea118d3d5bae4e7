// Vectors for other auditors: honest logs, and logs with every known kind of forgery, each with the expected verdict and the
// events of the first finding. `npm test -- vector -u` writes them.
import { encodeFunctionData, type Hex, parseAbi, parseTransaction } from 'viem';
import { toDid } from '../../src/crypto/did-key.ts';
import { leafHash } from '../../src/crypto/merkle.ts';
import { type DeployedIdea, quorumProfile } from '../../src/relayer/contracts.ts';
import type { QuorumSettings } from '../../src/relayer/quorum-settings.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { NO_PREVIOUS, toHex } from '../../src/vocabulary/values.ts';
import { HOUR, START } from '../kit/clock.ts';
import { PUBLIC_URL } from '../kit/test-service.ts';
import { SETTINGS } from '../relayer/quorum-file.ts';
import * as account from './account-vectors.ts';
import * as debate from './debate-vectors.ts';
import { auditLines, type ForgedMove, type Json, type Line, rechained, signedLine, toText } from './forge.ts';
import {
  AFTER_HONEST,
  ALTERED,
  altered,
  honest,
  ILLEGAL,
  line,
  MOVES,
  moves,
  payloadOf,
  records,
  request,
  requestOf,
  revealOf,
  text,
  WRONG_EVIDENCE,
  withLine,
} from './forgeries.ts';
import * as order from './order-vectors.ts';
import * as paced from './paced-vectors.ts';
import * as rules from './rule-vectors.ts';
import { ALLOCATIONS, ANN, BOB, CAT, FACTORY, REGISTRY, signed } from './sample.ts';
import * as stubs from './stub-vectors.ts';
import { wrongForms } from './transaction-forms.ts';

export interface Vector {
  readonly file: string;
  /** The file of the members' accounts, if the vector has one. */
  readonly accounts?: string;
  /** The file of kept lines, if the vector has one: the originals of stubs, or other stubs. */
  readonly originals?: string;
  /** The files of the log's earlier chambers, oldest first. */
  readonly after?: readonly string[];
  readonly title: string;
  readonly verdict: 'sound' | 'broken' | 'undecided';
  /** The events that the first finding may name; several if two lines contradict each other. */
  readonly eventIds: readonly number[];
}

export interface Made {
  readonly index: readonly Vector[];
  readonly texts: ReadonlyMap<string, string>;
}

type Row = readonly [title: string, text: string, ...eventIds: number[]];
type RowWithAccounts = readonly [title: string, text: string, accounts: string, ...eventIds: number[]];

const LINES = text.trimEnd().split('\n');
const OTHER_HASH = `0x${'12'.repeat(32)}` as const;
/** The proposer's wallet with one letter in the wrong case. */
const WRONG_CHECKSUM = '0x15d34AAf54267DB7D7c367839AAf71A00a2c6A65';
const OTHER_WALLET = `0x${'11'.repeat(20)}`;
const DEAD = `0x${'00'.repeat(18)}dEaD` as const;
const NOWHERE = `0x${'0'.repeat(40)}` as const;
const DEPLOY = 20;
const COMMITTED = 19;
const LAST = LINES.length;

const raw = (lines: readonly string[]) => toText(lines);
const rewritten = (lines: readonly Line[]) => toText(rechained(lines));
const lineOf = (eventId: number) => LINES[eventId - 1] as string;
const recordOf = (eventId: number) => records[eventId - 1] as Line;
const iso = (millis: number) => new Date(millis).toISOString();
/** The log with one line replaced, without corrected hashes. */
const replaced = (eventId: number, other: string) => raw(LINES.with(eventId - 1, other));
/** The log with members of one record replaced, and correct hashes. */
const withMembers = (eventId: number, members: Line) =>
  rewritten(records.with(eventId - 1, { ...recordOf(eventId), ...members }));
/** Only the moves, with members of one payload replaced and correct hashes, so that no root differs. */
const alteredMoves = (eventId: number, payload: Line) =>
  rewritten(
    moves.with(eventId - 1, { ...recordOf(eventId), payload: { ...payloadOf(recordOf(eventId)), ...payload } }),
  );
const withRequest = (members: Line) => withLine(AFTER_HONEST, { ...line, request: { ...request, ...members } });
const debateAt = (by: ForgedMove['by'], at: number) => withLine(AFTER_HONEST - 1, signedLine({ ...honest, by, at }));

const leafHex = (eventId: number) => toHex(leafHash(Buffer.from(lineOf(eventId))));
/** The moves with one more comment, whose body names a seen event. */
function withSeen(seen: Line): string {
  return withLine(AFTER_HONEST, signedLine({ ...honest, body: { ...(honest.body as Line), seen } }));
}

/** BOB's turn, which lasts 1,800 s from the preceding pass. */
const BOBS_TURN = Date.parse(recordOf(10)['ts'] as string);
const TURN_MILLIS = 1_800_000;

/** All types of events that name an account line in an earlier release. */
const NAMING = ['chamber.created', 'chamber.joined', 'chamber.proposed'];

const HONEST: readonly Row[] = [
  ['the whole log', text],
  ['a log without a final line break', text.trimEnd()],
  ['the moves alone', raw(LINES.slice(0, MOVES))],
  ['a log cut off within the moves', raw(LINES.slice(0, 9))],
  ['the first line alone', raw(LINES.slice(0, 1))],
  ['an earlier release, whose moves name no account line', rewritten(moves.map(withoutAccount))],
  [
    'an earlier release in which only creations, joins and proposals name account lines',
    rewritten(moves.map((move) => (NAMING.includes(String(move['type'])) ? withoutSeat(move) : withoutAccount(move)))),
  ],
  ['one more comment', withLine(AFTER_HONEST, line)],
  ['a comment that names a seen event', withSeen({ eventId: AFTER_HONEST - 1, leaf: leafHex(AFTER_HONEST - 1) })],
  [
    'a comment that names an event seen long before',
    withSeen({ eventId: 2, leaf: leafHex(2).replace(/[a-f]/g, (digit) => digit.toUpperCase()) }),
  ],
  ['a comment in the last millisecond of a turn', debateAt(BOB, BOBS_TURN + TURN_MILLIS - 1)],
  ['a comment in the first millisecond of the turn after a timeout', debateAt(CAT, BOBS_TURN + TURN_MILLIS)],
  ['one more reveal', withLine(MOVES + 1, reveal(4.5))],
  ['a reveal in the last millisecond', withLine(MOVES + 1, reveal(5 - 1 / HOUR))],
  [
    'a commitment in a block 15 s older than the end of the reveals',
    altered(COMMITTED, { committedAt: iso(START + 5 * HOUR - 15_000) }),
  ],
  [
    'a transaction signed again after its outcome, at a nonce in use',
    rewritten([...records, { ...recordOf(18), ts: recordOf(LAST)['ts'] as string }]),
  ],
];

const UNDECIDED: readonly Row[] = [
  ['a signature 301 s old', withLine(AFTER_HONEST, { ...line, ts: iso(honest.at + 301_000) })],
  ['a signature a day old', withLine(AFTER_HONEST, at(honest.at - 86_400_000))],
  ['a signature 61 s ahead', withLine(AFTER_HONEST, at(honest.at + 61_000))],
  ['a signature ten minutes ahead', withLine(AFTER_HONEST, at(honest.at + 600_000))],
  [
    'a request to a different service address',
    withLine(AFTER_HONEST, signedLine({ ...honest, origin: 'https://other.test/api' })),
  ],
  ['a commitment by a transaction that is not logged', altered(COMMITTED, { txHash: OTHER_HASH })],
  ['a token by a transaction that is not logged', altered(DEPLOY + 1, { txHash: OTHER_HASH })],
  [
    'a commitment in a block 16 s older than the end of the reveals',
    altered(COMMITTED, { committedAt: iso(START + 5 * HOUR - 16_000) }),
  ],
];

/** A chamber that is older than any audit. */
const AHEAD: readonly Row[] = [
  ['a join dated in the future', rules.joinedIn(Date.UTC(2020, 0, 1), Date.UTC(9998, 0, 1))],
];

/** Returns the first two moves, signed for these addresses. */
function signedAt(...bases: readonly string[]): string {
  const [created, joined] = [recordOf(1), recordOf(2)].map((record, index) => {
    const by = [ANN, BOB, CAT].find(({ did }) => did === record['did']) ?? ANN;
    const { body, targetUri } = requestOf(record);
    const path = new URL(String(targetUri)).pathname;
    const move = { by, type: String(record['type']), path, at: Date.parse(String(record['ts'])) };
    const origin = PUBLIC_URL + String(bases[index]);
    const sent = typeof body === 'string' && body !== '' ? { body: JSON.parse(body) as Json } : {};
    return signedLine({ ...move, origin, ...sent, payload: payloadOf(record) });
  }) as [Line, Line];
  return rewritten([created, joined]);
}

const TWO_ADDRESSES: readonly Row[] = [
  ['requests for an address and for its own encoding', signedAt('/a%20b', '/a%2520b')],
  ['requests for an address with an encoded slash, and for its own encoding', signedAt('/a%2Fb', '/a%252Fb')],
];

const OTHER_ADDRESS = '0x1111111111111111111111111111111111111111';
const failed = (txHash: Json) =>
  rewritten(
    records.with(20, {
      ...recordOf(21),
      type: 'idea.deploy_failed',
      payload: { ideaId: 'idea-1', txHash, reason: 'none' },
    }),
  );

/** A service's claims about the chain that lines neither confirm nor contradict. */
const OF_CHAIN: readonly Row[] = [
  ['chain claim: a different block', altered(COMMITTED, { blockNumber: 41 })],
  ['chain claim: a different time of the commitment', altered(COMMITTED, { committedAt: '2030-01-01T05:00:05.000Z' })],
  ['chain claim: a different token', altered(DEPLOY + 1, { tokenAddress: OTHER_ADDRESS })],
  ['chain claim: a different time of the token', altered(DEPLOY + 1, { graduatedAt: '2030-01-01T05:00:07.000Z' })],
  ['chain claim: a different reason', altered(LAST, { reason: 'none' })],
  ['chain claim: a denied token, without a transaction', failed(null)],
  ['chain claim: a denied token, with its transaction', failed(payloadOf(recordOf(DEPLOY))['txHash'] ?? null)],
  ['chain claim: a token that is not recorded', raw(LINES.slice(0, DEPLOY))],
];

/** Claims that only the chain can decide. */
const UNDECIDED_CHAIN: readonly Row[] = [
  ['chain claim: a failure by a transaction that is not logged', altered(LAST, { txHash: OTHER_HASH })],
  ['chain claim: a denied token, with a transaction that is not logged', failed(OTHER_HASH)],
  ['chain claim: a commitment whose transactions are not logged', rewritten(records.toSpliced(MOVES, 2))],
  ['chain claim: a token whose transaction is not logged', rewritten(records.toSpliced(DEPLOY - 1, 1))],
];

const COPIES: readonly Row[] = [
  ['the first line omitted', raw(LINES.toSpliced(0, 1)), 1],
  ['a move omitted', raw(LINES.toSpliced(5, 1)), 6],
  ['two moves omitted', raw(LINES.toSpliced(5, 2)), 6, 7],
  ['the last move omitted', raw(LINES.toSpliced(MOVES - 1, 1)), MOVES],
  ['the commitment omitted', raw(LINES.toSpliced(COMMITTED - 1, 1)), COMMITTED],
  ['a duplicate line', raw(LINES.toSpliced(6, 0, lineOf(6))), 6],
  ['two lines swapped', raw(LINES.with(9, lineOf(11)).with(10, lineOf(10))), 10, 11],
  ['a line moved further down', raw([...LINES.toSpliced(5, 1).slice(0, 12), lineOf(6), ...LINES.slice(13)]), 6],
  ['an empty line', raw(LINES.toSpliced(6, 0, '')), 7],
  ['a line that is not JSON', raw(LINES.toSpliced(6, 0, 'hello')), 7],
  ['a line of JSON that is not an object', raw(LINES.toSpliced(6, 0, '[]')), 7],
  ['a torn last line', text.slice(0, -40), LAST],
  ['a duplicate member name in a line', replaced(7, lineOf(7).replace('{', '{"chamberId":1,')), 7],
  ['members in a different order', replaced(7, lineOf(7).replace(/^\{("chamberId":1),("did":"[^"]*"),/, '{$2,$1,')), 7],
  ['a blank in a line', replaced(7, lineOf(7).replace(',', ', ')), 7],
  ['a character written as an escape', replaced(7, lineOf(7).replace('Rain', '\\u0052ain')), 7],
  ['a number in a different notation', replaced(7, lineOf(7).replace('"eventId":7', '"eventId":7.0')), 7],
  ['Windows line breaks', raw(LINES).replaceAll('\n', '\r\n'), 1],
  ['a byte order mark', `\uFEFF${text}`, 1],
  ['an altered comment without corrected hashes', replaced(11, lineOf(11).replace('No walls', 'No halls')), 11],
  [
    'a different hash of the previous line',
    replaced(11, lineOf(11).replace(/"prev":"[^"]*"/, `"prev":"${OTHER_HASH}"`)),
    11,
  ],
  ['an altered last move without corrected hashes', replaced(MOVES, lineOf(MOVES).replace('6000', '6001')), MOVES],
];

const RECORDS: readonly Row[] = [
  ['an unknown member of a record', withMembers(7, { note: 'x' }), 7],
  ['an unknown member of a payload', altered(7, { note: 'x' }), 7],
  ['a payload without a member', withMembers(7, { payload: { ...payloadOf(recordOf(7)), slot: null } }), 7],
  ['an unknown type', withMembers(7, { type: 'chamber.renamed' }), 7],
  ['a time without milliseconds', withMembers(7, { ts: '2030-01-01T01:00:02Z' }), 7],
  ['a time with an offset', withMembers(7, { ts: '2030-01-01T02:00:02.000+01:00' }), 7],
  ['a time that does not exist', withMembers(7, { ts: '2030-02-30T01:00:02.000Z' }), 7],
  ['a time before that of the previous line', withMembers(COMMITTED, { ts: iso(START + 5 * HOUR) }), COMMITTED],
  ['a line of a different chamber', withMembers(7, { chamberId: 2 }), 7],
  ['a first line that refers to a previous one', raw([lineOf(1).replace(`0x${'00'.repeat(32)}`, OTHER_HASH)]), 1],
  ['a hash in uppercase', replaced(7, capitalPrev(7)), 7],
  ['a service event with a signer', withMembers(COMMITTED, { did: ANN.did }), COMMITTED],
  ['a wallet with a wrong checksum', alteredMoves(7, { creatorWallet: WRONG_CHECKSUM }), 7],
  ['numbers that skip one, with correct hashes', skipped(7), 7],
];

const EVIDENCE: readonly Row[] = [
  ...WRONG_EVIDENCE.map(([title, forged]): Row => [title, withLine(AFTER_HONEST, forged), AFTER_HONEST]),
  ['a replayed signature', rewritten(moves.toSpliced(AFTER_HONEST - 1, 0, line, line)), AFTER_HONEST, AFTER_HONEST + 1],
  ['a key of small order', withLine(AFTER_HONEST, ofSmallOrder()), AFTER_HONEST],
  ['a signature a day and a second old', withLine(AFTER_HONEST, at(honest.at - 86_401_000)), AFTER_HONEST],
  ['a signature ten minutes and a second ahead', withLine(AFTER_HONEST, at(honest.at + 601_000)), AFTER_HONEST],
  ['a signature in the second in which it expired', withLine(AFTER_HONEST, expired(100_000)), AFTER_HONEST],
  ['a body with an extra blank', withRequest({ body: `${String(request['body'])} ` }), AFTER_HONEST],
  [
    'a creation time other than the signed one',
    withRequest({ signatureInput: inputWith(/created=(\d+)/, (s) => `created=${Number(s) + 1}`) }),
    AFTER_HONEST,
  ],
  [
    'a nonce other than the signed one',
    withRequest({ signatureInput: inputWith(/nonce="([^"]*)"/, () => 'nonce="x"') }),
    AFTER_HONEST,
  ],
  [
    'a different algorithm',
    withRequest({ signatureInput: inputWith(/alg="([^"]*)"/, () => 'alg="hmac-sha256"') }),
    AFTER_HONEST,
  ],
  [
    'a required component omitted',
    withRequest({ signatureInput: inputWith(/ ?"@target-uri"()/, () => '') }),
    AFTER_HONEST,
  ],
  [
    'a tab at the end of a field',
    withRequest({
      signatureInput: `a=("@method"), ${String(request['signatureInput'])}\t`,
      signature: `a=:AA==:, ${String(request['signature'])}\t`,
    }),
    AFTER_HONEST,
  ],
  [
    'a signature under a different label',
    withRequest({ signature: String(request['signature']).replace('sig1', 'sig2') }),
    AFTER_HONEST,
  ],
];

const RULES: readonly Row[] = [
  ...ILLEGAL.map(({ title, eventId, code: _, ...move }): Row => [title, withLine(eventId, signedLine(move)), eventId]),
  ['a seen event with an extra member', withSeen({ eventId: 2, leaf: leafHex(2), note: 'x' }), AFTER_HONEST],
  ['a seen event without a leaf', withSeen({ eventId: 2 }), AFTER_HONEST],
  ['a comment in the first millisecond after a turn', debateAt(BOB, BOBS_TURN + TURN_MILLIS), AFTER_HONEST - 1],
  ['a pass omitted by a service that rewrites its log', rewritten(records.toSpliced(5, 1)), 6],
  ...moves.map(
    (record, index): Row => [
      `the payload of event ${index + 1} altered by a service that rewrites its log`,
      altered(index + 1, slightlyAltered(record)),
      index + 1,
    ],
  ),
  ['an account line before that of the creation', alteredMoves(1, { accountEventId: 2 }), 1, 2],
  ['a join without an account line', withMembers(3, withoutAccount(recordOf(3))), 3],
  ['a join without the wallet of its member', withMembers(3, withoutSeat(recordOf(3))), 3],
  [
    'a join that says whether its wallet is proven but does not name it',
    withMembers(3, lacking(3, 'walletAddress')),
    3,
  ],
  ['a join that names its wallet but not whether it is proven', withMembers(3, lacking(3, 'walletProven')), 3],
  ['a join of an earlier release with a label', labelled(), 3],
  ['a comment without an account line', withMembers(9, withoutAccount(recordOf(9))), 9],
  ['two wallets from one account line', alteredMoves(8, { creatorWallet: OTHER_WALLET }), 3, 7, 8],
  [
    'a history other than the one that the agent has seen',
    withSeen({ eventId: AFTER_HONEST - 1, leaf: OTHER_HASH }),
    AFTER_HONEST - 1,
    AFTER_HONEST,
  ],
  ['an event that the agent cannot have seen', withSeen({ eventId: AFTER_HONEST, leaf: OTHER_HASH }), AFTER_HONEST],
];

async function serviceEvents(): Promise<readonly Row[]> {
  const { payload } = recordOf(DEPLOY) as unknown as { payload: RelayTransaction };
  const { data = '0x', maxFeePerGas: fee = 0n } = parseTransaction(payload.rawTransaction);
  const terms = { nonce: payload.nonce, fee };
  const call = async (...args: Parameters<typeof signed>) => altered(DEPLOY, { ...(await signed(...args)) });
  return [
    ...ALTERED.map(([title, eventId, altering]): Row => [title, altered(eventId, altering), eventId]),
    ['a transaction on a different chain', await call(FACTORY, data, { ...terms, chainId: 1 }), DEPLOY],
    ['a transaction with more data than its call', await call(FACTORY, `${data}00`, terms), DEPLOY],
    ['a transaction that transfers value', await call(FACTORY, data, { ...terms, value: 1n }), DEPLOY],
    ['a transaction that makes a different call', await call(DEAD, '0x', terms), DEPLOY],
    ['a transaction that commits a different root', await committing(1n, OTHER_HASH), MOVES + 1],
    ['a transaction that commits a different chamber', await committing(2n, rootOf(recordOf(COMMITTED))), MOVES + 1],
    ['a transaction with a different hash', altered(DEPLOY, { txHash: OTHER_HASH }), DEPLOY],
    ['a transaction of an idea that did not graduate', altered(DEPLOY, { ideaId: 'idea-3' }), DEPLOY],
    ['a transaction for a different idea', altered(DEPLOY, { ideaId: 'idea-2' }), DEPLOY],
    ['a deployment sent before the commitment', rewritten(swappedWithNext(COMMITTED)), COMMITTED],
    ['a commitment by the transaction of a deployment', altered(COMMITTED, { txHash: payload.txHash }), DEPLOY],
    ['a failure by a different idea’s transaction', altered(LAST, { txHash: payload.txHash }), LAST],
    ['a second token of an idea', rewritten([...records, later(21)]), LAST + 1],
    ['a second failure of an idea', rewritten([...records, later(LAST)]), LAST + 1],
    [
      'one token for two ideas',
      rewritten(
        records.with(LAST - 1, {
          ...later(21),
          payload: { ...payloadOf(recordOf(21)), ideaId: 'idea-2', txHash: OTHER_HASH },
        }),
      ),
      LAST,
    ],
    [
      'a transaction after its outcome at a new nonce',
      rewritten([
        ...records,
        {
          ...later(DEPLOY),
          payload: { ...payloadOf(recordOf(DEPLOY)), ...(await signed(FACTORY, data, { ...terms, nonce: 9 })) },
        },
      ]),
      LAST + 1,
    ],
    ['a move after the commitment', rewritten([...records, { ...line, ts: recordOf(LAST)['ts'] as string }]), LAST + 1],
    [
      'a transaction dated before the end of the reveals',
      withMembers(MOVES + 1, { ts: iso(START + 4.9 * HOUR) }),
      MOVES + 1,
    ],
    [
      'a second commitment on the chain',
      rewritten([...records, { ...recordOf(COMMITTED), ts: recordOf(LAST)['ts'] as string }]),
      LAST + 1,
    ],
    ['a token before the commitment', rewritten(records.toSpliced(COMMITTED - 1, 1)), COMMITTED],
    ['a failure of an idea that did not graduate', altered(LAST, { ideaId: 'idea-3' }), LAST],
    ['a failure of an idea that does not exist', altered(LAST, { ideaId: 'idea-9' }), LAST],
    [
      'the token of a different idea',
      rewritten(
        records.with(LAST - 1, {
          ...recordOf(LAST),
          type: 'idea.deployed',
          payload: { ...payloadOf(recordOf(21)), ideaId: 'idea-2' },
        }),
      ),
      LAST,
    ],
    ['a service event among the moves', withLine(10, { ...recordOf(COMMITTED), ts: iso(START + 2 * HOUR + 500) }), 10],
    ['a transaction before the creation', rewritten([beforeCreation(MOVES + 1), ...moves]), 1],
    ['a commitment before the creation', rewritten([beforeCreation(COMMITTED), ...moves]), 1],
    ['a token before the creation', rewritten([beforeCreation(DEPLOY + 1), ...moves]), 1],
    ['a failure before the creation', rewritten([beforeCreation(LAST), ...moves]), 1],
    ['service events alone', rewritten(records.slice(DEPLOY - 1)), 1],
    ['a nonce at which its account had signed another transaction', await deployedAt(7), DEPLOY],
    ['two outcomes by one transaction that is not logged', namedTwice(DEPLOY + 1, LAST), LAST],
    [
      'a token by the transaction of the commitment, which is not logged',
      namedTwice(COMMITTED, DEPLOY + 1),
      DEPLOY + 1,
    ],
    ['a commitment in block 0', altered(COMMITTED, { blockNumber: 0 }), COMMITTED],
    ['a commitment sent to the zero address', await committing(1n, rootOf(recordOf(COMMITTED)), NOWHERE), MOVES + 1],
    ['a deployment sent to the registry', await call(REGISTRY, data, terms), DEPLOY],
  ];
}

async function transactions(): Promise<readonly Row[]> {
  const { payload } = recordOf(DEPLOY) as unknown as { payload: RelayTransaction };
  const forms = await wrongForms(payload);
  return forms.map(([title, forged]): Row => [title, altered(DEPLOY, { ...forged }), DEPLOY]);
}

/** The log with a call to a different contract than in the preceding call. */
async function secondRegistry(): Promise<string> {
  const raised = MOVES + 2;
  const { rawTransaction } = payloadOf(recordOf(raised)) as unknown as RelayTransaction;
  const { data = '0x' } = parseTransaction(rawTransaction);
  const sent = await signed(OTHER_ADDRESS, data, { nonce: 7, fee: 110n });
  return rewritten(
    records.with(raised - 1, { ...recordOf(raised), payload: { ...sent } }).with(COMMITTED - 1, {
      ...recordOf(COMMITTED),
      payload: { ...payloadOf(recordOf(COMMITTED)), txHash: sent.txHash },
    }),
  );
}

/** A service event at the time of the creation. */
function beforeCreation(eventId: number): Line {
  return { ...recordOf(eventId), ts: recordOf(1)['ts'] as string };
}

/** Repeats a service event at the end of the log. */
function later(eventId: number): Line {
  return { ...recordOf(eventId), ts: recordOf(LAST)['ts'] as string };
}

/** Swaps an event with the next one; both keep their times. */
function swappedWithNext(eventId: number): Line[] {
  const [first, second] = [recordOf(eventId), recordOf(eventId + 1)];
  const [at, after] = [first['ts'] as string, second['ts'] as string];
  return records.with(eventId - 1, { ...second, ts: at }).with(eventId, { ...first, ts: after }) as Line[];
}

const COMMIT = parseAbi(['function commitChamber(uint256 chamberId, bytes32 root)']);
const rootOf = (record: Line) => payloadOf(record)['merkleRoot'] as Hex;

/** The log whose first transaction makes this commitment. */
async function committing(chamberId: bigint, root: Hex, to: Hex = REGISTRY): Promise<string> {
  const data = encodeFunctionData({ abi: COMMIT, functionName: 'commitChamber', args: [chamberId, root] });
  return altered(MOVES + 1, { ...(await signed(to, data, { nonce: 7, fee: 100n })) });
}

/** The log whose first deployment has a different nonce, and whose token names it. */
async function deployedAt(nonce: number): Promise<string> {
  const { rawTransaction } = payloadOf(recordOf(DEPLOY)) as unknown as RelayTransaction;
  const { data = '0x', maxFeePerGas: fee = 0n } = parseTransaction(rawTransaction);
  const sent = await signed(FACTORY, data, { nonce, fee });
  const deployed = { ...payloadOf(recordOf(DEPLOY + 1)), txHash: sent.txHash };
  return rewritten(
    records
      .with(DEPLOY - 1, { ...recordOf(DEPLOY), payload: { ...payloadOf(recordOf(DEPLOY)), ...sent } })
      .with(DEPLOY, { ...recordOf(DEPLOY + 1), payload: deployed }),
  );
}

/** The log in which two outcomes name the same unlogged transaction. */
function namedTwice(...eventIds: readonly number[]): string {
  const naming = (record: Line) => ({ ...record, payload: { ...payloadOf(record), txHash: OTHER_HASH } });
  return rewritten(records.map((record) => (eventIds.includes(Number(record['eventId'])) ? naming(record) : record)));
}

const timeOf = (eventId: number, name: string) => Date.parse(String(payloadOf(recordOf(eventId))[name]));
const tsOf = (eventId: number) => Date.parse(String(recordOf(eventId)['ts']));
const committedAt = (millis: number) => altered(COMMITTED, { committedAt: iso(tsOf(COMMITTED) + millis) });
const graduatedAt = (millis: number) =>
  altered(DEPLOY + 1, { graduatedAt: iso(timeOf(COMMITTED, 'committedAt') + millis) });

/** Contradictions that no working chain has, but that a service may have read from a failing or reorganized chain. */
async function contradictions(): Promise<readonly Row[]> {
  return [
    ['a commitment in a block 16 s younger than its line', committedAt(16_000)],
    ['a token in a block 16 s older than the commitment', graduatedAt(-16_000)],
    ['a token in a block of the year 9999', graduatedAt(Date.UTC(9999, 1) - START)],
    ['a token at the zero address', altered(DEPLOY + 1, { tokenAddress: NOWHERE })],
    ['a token at the address of the factory', altered(DEPLOY + 1, { tokenAddress: FACTORY })],
    ['a token deployed at a nonce that its account used before the commitment', await deployedAt(3)],
  ];
}

/** The log of a service that omits a move: with correct root and count, and without the transactions that would expose it. */
async function rewrittenWithout(isLeftOut: (type: string) => boolean): Promise<string> {
  const kept = records.toSpliced(AFTER_HONEST - 2, 1).filter(({ type }) => !isLeftOut(String(type)));
  const { moves: tree } = await auditLines(rewritten(kept.slice(0, MOVES - 1)), {});
  const commitment = { merkleRoot: tree.root(), eventCount: MOVES - 1 };
  const forged = kept.map((record) =>
    record['type'] === 'chamber.committed' ? { ...record, payload: { ...payloadOf(record), ...commitment } } : record,
  );
  return rewritten(forged as Line[]);
}

export async function vectors(): Promise<Made> {
  const omissions: readonly Row[] = [
    [
      'a move and the commitment’s transactions omitted, root and count corrected',
      await rewrittenWithout((type) => type === 'relay.commit_submitted'),
    ],
    [
      'a move and all transactions omitted, root and count corrected',
      await rewrittenWithout((type) => type.startsWith('relay.')),
    ],
  ];
  const made: Vector[] = [];
  const texts = new Map<string, string>();
  const add = (group: string, verdict: Vector['verdict'], rows: readonly Row[]) => {
    for (const [index, [title, text, ...eventIds]] of rows.entries()) {
      const file = fileOf(group, index);
      texts.set(file, text);
      made.push({ file, title, verdict, eventIds });
    }
  };
  const addWithAccounts = (group: string, verdict: Vector['verdict'], rows: readonly RowWithAccounts[]) => {
    for (const [index, [title, text, accountText, ...eventIds]] of rows.entries()) {
      const file = fileOf(group, index);
      const isHonest = accountText === account.ACCOUNTS;
      const accounts = isHonest ? '../chamber-with-admission.accounts.ndjson' : file.replace('.', '.accounts.');
      texts.set(file, text);
      if (!isHonest) texts.set(accounts, accountText);
      made.push({ file, accounts, title, verdict, eventIds });
    }
  };
  const addWithOriginals = (group: string, verdict: Vector['verdict'], rows: readonly RowWithAccounts[]) => {
    for (const [index, [title, text, kept, ...eventIds]] of rows.entries()) {
      const file = fileOf(group, index);
      const originals = file.replace('.', '.originals.');
      texts.set(file, text).set(originals, kept);
      made.push({ file, originals, title, verdict, eventIds });
    }
  };
  const addAfter = (group: string, verdict: Vector['verdict'], rows: readonly (typeof order.SOUND)[number][]) => {
    for (const [index, [title, text, after, ...eventIds]] of rows.entries()) {
      const file = fileOf(group, index);
      texts.set(file, text);
      made.push({ file, after, title, verdict, eventIds });
    }
  };
  add('honest', 'sound', [
    ...HONEST,
    ['a deployment in the quorum form, which transfers value', await quorumDeployment()],
    ['a commitment in a block 15 s younger than its line', committedAt(15_000)],
    ['a token in a block 15 s older than the commitment', graduatedAt(-15_000)],
    ['requests for one address in two encodings', signedAt('/%7eann%20%2f', '/~ann%20%2F')],
    [
      'a foreign label whose display string ends with a backslash',
      withRequest({
        signatureInput: `a=%"x\\", ${String(request['signatureInput'])}`,
        signature: `a=:AA==:, ${String(request['signature'])}`,
      }),
    ],
  ]);
  add('undecided', 'undecided', [...UNDECIDED, ...omissions, ...(await contradictions()), ...AHEAD, ...TWO_ADDRESSES]);
  add('copy', 'broken', COPIES);
  add('record', 'broken', RECORDS);
  add('evidence', 'broken', EVIDENCE);
  add('rule', 'broken', RULES);
  add('service-event', 'broken', await serviceEvents());
  add('rule-honest', 'sound', rules.SOUND);
  add('rule-more', 'broken', rules.BROKEN);
  add('transaction', 'broken', await transactions());
  add('chain', 'sound', OF_CHAIN);
  add('chain-undecided', 'undecided', [...UNDECIDED_CHAIN, ['chain claim: a second registry', await secondRegistry()]]);
  add('paced-honest', 'sound', paced.SOUND);
  add('paced-undecided', 'undecided', paced.UNDECIDED);
  add('paced-rule', 'broken', paced.BROKEN);
  add('debate-honest', 'sound', await debate.sound());
  add('debate-rule', 'broken', debate.BROKEN);
  add('debate-transaction', 'broken', await debate.wrongDeployments());
  add('admission-honest', 'sound', account.ALONE_SOUND);
  add('admission-rule', 'broken', account.ALONE_BROKEN);
  addWithAccounts('account-honest', 'sound', await account.soundAccounts());
  addWithAccounts('account-undecided', 'undecided', await account.undecidedAccounts());
  addWithAccounts('account-broken', 'broken', await account.brokenAccounts());
  add('stub-honest', 'sound', stubs.SOUND);
  add('stub-undecided', 'undecided', stubs.UNDECIDED);
  add('stub-broken', 'broken', stubs.BROKEN);
  addWithAccounts('stub-account-honest', 'sound', stubs.SOUND_ACCOUNTS);
  addWithAccounts('stub-account-broken', 'broken', stubs.BROKEN_ACCOUNTS);
  addWithOriginals('stub-original-honest', 'sound', stubs.SOUND_ORIGINALS);
  addWithOriginals('stub-original-broken', 'broken', stubs.BROKEN_ORIGINALS);
  addAfter('order-honest', 'sound', order.SOUND);
  addAfter('order-broken', 'broken', order.BROKEN);
  return { index: made, texts };
}

function fileOf(group: string, index: number): string {
  return `${group}-${String(index + 1).padStart(2, '0')}.ndjson`;
}

function withoutAccount(record: Line): Line {
  const { accountEventId: _, ...payload } = payloadOf(withoutSeat(record));
  return { ...record, payload };
}

function withoutSeat(record: Line): Line {
  const { walletAddress: _, walletProven: __, label: ___, ...payload } = payloadOf(record);
  return { ...record, payload };
}

function at(millis: number): Line {
  return { ...line, request: requestOf(signedLine({ ...honest, at: millis })) };
}

function expired(afterMillis: number): Line {
  return {
    ...line,
    request: requestOf(signedLine({ ...honest, expires: afterMillis / 1000 })),
    ts: iso(honest.at + afterMillis),
  };
}

function reveal(hour: number): Line {
  const content = revealOf(ALLOCATIONS.cat);
  return signedLine({
    by: CAT,
    type: 'allocation.revealed',
    path: 'allocate/reveal',
    at: START + hour * HOUR,
    ...content,
  });
}

function ofSmallOrder(): Line {
  const did = toDid(Uint8Array.of(1, ...new Array(31).fill(0)));
  return { ...line, did, request: JSON.parse(JSON.stringify(request).replaceAll(CAT.did, did)) as Line };
}

function inputWith(pattern: RegExp, change: (value: string) => string): string {
  return String(request['signatureInput']).replace(pattern, (_, value: string) => change(value));
}

/** The lines, with numbers increased by one from that event on, and correct hashes. */
function skipped(eventId: number): string {
  const lines: string[] = [];
  for (const record of records) {
    const before = lines.at(-1);
    const prev = before === undefined ? NO_PREVIOUS : toHex(leafHash(Buffer.from(before)));
    const number = Number(record['eventId']);
    lines.push(canonicalJson({ ...record, eventId: number < eventId ? number : number + 1, prev }));
  }
  return raw(lines);
}

function lacking(eventId: number, member: string): Line {
  const { [member]: _, ...payload } = payloadOf(recordOf(eventId));
  return { payload };
}

/** The moves as an earlier release writes them, with a label in one join. */
function labelled(): string {
  const bare = moves.map(withoutAccount);
  const joined = bare[2] as Line;
  return rewritten(bare.with(2, { ...joined, payload: { ...payloadOf(joined), label: 'Bob' } }));
}

/** The sample's first deployment in the quorum form, and the token that names it. */
async function quorumDeployment(): Promise<string> {
  const { payload } = recordOf(DEPLOY) as unknown as { payload: RelayTransaction };
  const { maxFeePerGas: fee = 0n } = parseTransaction(payload.rawTransaction);
  const idea = payloadOf(moves.find(({ type }) => type === 'chamber.proposed') as Line);
  const data = quorumProfile({ ...SETTINGS, value: 1n } as unknown as QuorumSettings).deployCall(
    1,
    idea as unknown as DeployedIdea,
  );
  const sent = await signed(FACTORY, data, { nonce: payload.nonce, fee, value: 1n });
  const deployed = { ...payloadOf(recordOf(DEPLOY + 1)), txHash: sent.txHash };
  return rewritten(
    records
      .with(DEPLOY - 1, { ...recordOf(DEPLOY), payload: { ...payloadOf(recordOf(DEPLOY)), ...sent } })
      .with(DEPLOY, { ...recordOf(DEPLOY + 1), payload: deployed }),
  );
}

function capitalPrev(eventId: number): string {
  return lineOf(eventId).replace(/"prev":"0x([0-9a-f]{64})"/, (_, hash: string) => `"prev":"0x${hash.toUpperCase()}"`);
}

/** Changes the first member that the request states or the service assigns. */
function slightlyAltered(record: Line): Line {
  const payload = payloadOf(record);
  const changes: Readonly<Record<string, Json>> = {
    name: 'Another name',
    turnOrder: Number(payload['turnOrder']) + 1,
    comment: 'Another comment.',
    nextTurnAgent: CAT.did,
    commitment: OTHER_HASH,
    salt: `0x${'5b'.repeat(32)}`,
  };
  const [name = ''] = Object.keys(changes).filter((each) => each in payload && payload[each] !== changes[each]);
  return { [name]: name === 'nextTurnAgent' && payload[name] === CAT.did ? ANN.did : (changes[name] ?? null) };
}

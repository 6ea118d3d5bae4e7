// Vectors of a chamber that restricts admission, and of its members' accounts, made from the sample log with both.
import { readFileSync } from 'node:fs';
import { leafHash } from '../../src/crypto/merkle.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import { NO_PREVIOUS, toHex } from '../../src/vocabulary/values.ts';
import { HOUR, START } from '../kit/clock.ts';
import { PUBLIC_URL } from '../kit/test-service.ts';
import { proofBy, retirementBy } from '../kit/wallets.ts';
import { altered, type Json, type Line, parse, rechained, signedAccountLine, signedLine, toText } from './forge.ts';
import { text as open, records as openRecords, payloadOf, requestOf } from './forgeries.ts';
import { ANN, BOB, CAT } from './sample.ts';
import { FIRST, SECOND, THIRD } from './sample-with-admission.ts';
import { CURVE_ORDER } from './transaction-forms.ts';

const read = (name: string) => readFileSync(new URL(`../../fixtures/logs/${name}.ndjson`, import.meta.url), 'utf8');
const text = read('chamber-with-admission');
export const ACCOUNTS = read('chamber-with-admission.accounts');

const records = parse(text.trimEnd().split('\n'));
const MOVES = 12;
const moves = records.slice(0, MOVES);
const [CREATED, ADMITTED, ANN_JOINED, BOB_JOINED, PROPOSED, ANN_PASSED] = [1, 2, 3, 4, 5, 6] as const;
const LAST_OF_ANN = 11;
const LAST_OF_BOB = 12;
/** A broken account may be reported at any event of its agent. */
const eventsOf = ({ did }: { readonly did: string }) =>
  moves.flatMap((move) => (move['did'] === did ? [Number(move['eventId'])] : []));
/** The event of BOB's join in the sample log without admission. */
const JOINED_OPEN = 3;
const OF_ANN = eventsOf(ANN);
const OF_BOB = eventsOf(BOB);

const accountLines = ACCOUNTS.trimEnd().split('\n');
const accounts = parse(accountLines);
const [ann, bob] = [ANN, BOB].map(({ did }) => accounts.filter((line) => line['did'] === did)) as [Line[], Line[]];
/** Event 3 is another wallet of ANN, and another personality of BOB. */
const [REGISTERED, PROVEN, CHANGED, RETIRED] = [1, 2, 3, 4] as const;

type Alone = readonly [title: string, text: string, ...eventIds: number[]];
type WithAccounts = readonly [title: string, text: string, accounts: string, ...eventIds: number[]];

const rewritten = (lines: readonly Line[]) => toText(rechained(lines));
const recordIn = (lines: readonly Line[], eventId: number) => lines[eventId - 1] as Line;
const atOf = (lines: readonly Line[], eventId: number) => Date.parse(String(recordIn(lines, eventId)['ts']));
const iso = (millis: number) => new Date(millis).toISOString();

/** The lines, one of which lacks a member of its payload. */
function without(lines: readonly Line[], eventId: number, member: string): Line[] {
  const { [member]: _, ...payload } = payloadOf(recordIn(lines, eventId));
  return lines.with(eventId - 1, { ...recordIn(lines, eventId), payload }) as Line[];
}

const ofMoves = (eventId: number, payload: Line) => rewritten(altered(moves, eventId, payload));
const tokenWith = (eventId: number, changes: Line): Line => ({
  token: { ...(payloadOf(recordIn(moves, eventId))['token'] as Line), ...changes },
});

/** Accounts with correct numbers and hashes. */
const accountsOf = ({ of = ann, and = bob }: { readonly of?: readonly Line[]; readonly and?: readonly Line[] }) =>
  rewritten(of) + rewritten(and);
const ofAnn = (eventId: number, payload: Line, members: Line = {}) =>
  accountsOf({ of: altered(ann, eventId, payload, members) });
const ofBob = (eventId: number, payload: Line, members: Line = {}) =>
  accountsOf({ and: altered(bob, eventId, payload, members) });
const proofIn = (lines: readonly Line[], eventId: number) => payloadOf(recordIn(lines, eventId))['walletProof'] as Line;
const withProof = (changes: Line) => ofAnn(PROVEN, { walletProof: { ...proofIn(ann, PROVEN), ...changes } });

/** The last move of ANN, signed at another time. */
function lastOfAnnAt(millis: number): string {
  const line = recordIn(moves, LAST_OF_ANN);
  const { accountEventId, ...payload } = payloadOf(line);
  const moved = signedLine({
    ...{ by: ANN, at: millis, type: 'allocation.revealed', path: 'allocate/reveal' },
    ...{ body: JSON.parse(String(requestOf(line)['body'])) as Json, payload },
  });
  return rewritten([
    ...moves.slice(0, LAST_OF_ANN - 1),
    { ...recordIn(moves, LAST_OF_BOB) },
    { ...moved, payload: { ...payloadOf(moved), accountEventId: accountEventId ?? null } },
  ]);
}

interface Registering {
  /** When the request was signed. */
  readonly at: number;
  /** When the service accepted it; the same by default. */
  readonly acceptedAt?: number;
  readonly issuedAt?: number;
  readonly origin?: string;
  readonly service?: string;
  /** Replaces the wallet's signature. */
  readonly signature?: string;
  /** The recorded block of a contract's acceptance. */
  readonly accepted?: Line;
}

/** BOB's account with another registration. */
async function bobRegistered(how: Registering): Promise<string> {
  const { at, acceptedAt = at, issuedAt = at, origin = PUBLIC_URL, service = PUBLIC_URL, accepted = {} } = how;
  const proof = await proofBy(SECOND, BOB.did, { issuedAt: iso(issuedAt), service });
  const signature = how.signature ?? proof.walletSignature;
  const content = { pubkeyHex: BOB.pubkeyHex, walletAddress: SECOND.address, personality: {} };
  const { agentId = '' } = payloadOf(recordIn(bob, PROVEN));
  const line = signedAccountLine({
    ...{ by: BOB, at, type: 'agent.registered', path: '/register', origin },
    body: { ...content, walletSignature: signature, issuedAt: proof.issuedAt },
    payload: { agentId, ...content, walletProof: { signature, issuedAt: proof.issuedAt, service, ...accepted } },
  });
  return accountsOf({ and: bob.with(PROVEN - 1, { ...line, ts: iso(acceptedAt) }) });
}

/** BOB's account, whose registration brought only the time of a wallet proof. */
function bobHalfProven(): string {
  const at = atOf(bob, PROVEN);
  const content = { pubkeyHex: BOB.pubkeyHex, walletAddress: SECOND.address, personality: {} };
  const { agentId = '' } = payloadOf(recordIn(bob, PROVEN));
  const line = signedAccountLine({
    ...{ by: BOB, at, type: 'agent.registered', path: '/register' },
    ...{ body: { ...content, issuedAt: iso(at) }, payload: { agentId, ...content } },
  });
  return accountsOf({ and: bob.with(PROVEN - 1, line) });
}

/** BOB's account, retired by a wallet's signature. */
async function bobRetired(
  wallet: typeof SECOND,
  {
    issuedAt = atOf(bob, RETIRED) as number | string,
    walletAddress = wallet.address as string,
    accepted = {} as Line,
  } = {},
) {
  const about = { issuedAt: typeof issuedAt === 'number' ? iso(issuedAt) : issuedAt };
  const { walletSignature: signature, ...proof } = await retirementBy(wallet, BOB.did, about);
  const walletProof = { signature, issuedAt: proof.issuedAt, service: PUBLIC_URL, ...accepted };
  return ofBob(RETIRED, { walletAddress, walletProof });
}

/** BOB's account, whose contract wallet has retired the key by a signature of so many bytes. */
async function bobRetiredByContract(bytes: number): Promise<string> {
  const contract = await bobRegistered({ at: atOf(bob, PROVEN), signature: OF_CONTRACT, accepted: BLOCK });
  const lines = parse(contract.trimEnd().split('\n')).filter(({ did }) => did === BOB.did);
  const proof = { ...proofIn(bob, RETIRED), signature: `0x${'c0'.repeat(bytes)}`, ...BLOCK };
  return accountsOf({ and: altered(lines, RETIRED, { walletProof: proof }) });
}

/** Only the retirement of ANN's account, with another body. */
function retiredAlone(body: Line): string {
  const line = { by: ANN, at: atOf(ann, RETIRED), type: 'agent.retired', path: '/me/retire', body };
  const retired = signedAccountLine({ ...line, payload: { by: 'key' } });
  const [last = ''] = rechained([...ann.slice(0, RETIRED - 1), retired]).slice(-1);
  return toText([last, ...accountLines.slice(ann.length)]);
}

function bobWithEmail(): string {
  const line = recordIn(bob, PROVEN);
  const { agentId, walletProof: _, ...content } = payloadOf(line);
  const body = { ...content, operatorEmail: 'bob@example.org' };
  const registration = { by: BOB, at: atOf(bob, PROVEN), type: 'agent.registered', path: '/register', body };
  const kept = signedAccountLine({ ...registration, payload: { ...content, agentId: agentId ?? null } });
  return accountsOf({ and: [recordIn(bob, REGISTERED), line, kept, ...bob.slice(PROVEN)] });
}

function inCapitals(hex: string): string {
  return `0x${hex.slice(2).toUpperCase()}`;
}

/** BOB's account from its second line on, with a `prev` of zeros. */
function withoutBefore(): string {
  let prev: Json = NO_PREVIOUS;
  const given = bob.slice(PROVEN - 1).map((line) => {
    const text = canonicalJson({ ...line, prev });
    prev = toHex(leafHash(Buffer.from(text)));
    return text;
  });
  return rewritten(ann) + toText(given);
}

/** BOB's account, whose contract wallet was asked at a block that the joins name with another height. */
async function bobAtOtherHeight(): Promise<string> {
  const { blockHash = null, blockNumber } = payloadOf(recordIn(moves, BOB_JOINED))['token'] as Line;
  const accepted = { chainId: 31_337, blockHash, blockNumber: Number(blockNumber) + 1 };
  return await bobRegistered({ at: atOf(bob, PROVEN), signature: OF_CONTRACT, accepted });
}

/** BOB's moves and account: another registration, and an unsigned one of the same wallet, which his moves name. */
async function bobUnsigned(how: Registering): Promise<readonly [text: string, accounts: string]> {
  const later = moves.map((move) => {
    const { accountEventId, ...payload } = payloadOf(move);
    const isOfBob = move['did'] === BOB.did;
    return isOfBob ? { ...move, payload: { ...payload, accountEventId: Number(accountEventId) + 1 } } : move;
  });
  const [registered, proven, ...rest] = parse((await bobRegistered(how)).trimEnd().split('\n')).filter(
    ({ did }) => did === BOB.did,
  ) as [Line, Line, ...Line[]];
  const { walletProof: _, ...payload } = payloadOf(proven);
  const again = { ...proven, payload, request: null };
  return [rewritten(later), accountsOf({ and: [registered, proven, again, ...rest] })];
}

const BLOCK = { chainId: 31_337, blockNumber: 41, blockHash: `0x${'c3'.repeat(32)}` };
/** Only a contract can accept it. */
const OF_CONTRACT = `0x${'c0'.repeat(65)}`;

/** The moves with another height of the block of the creation and the joins. */
function inBlock(blockNumber: number): Line[] {
  return [CREATED, ANN_JOINED, BOB_JOINED].reduce<Line[]>(
    (lines, eventId) => altered(lines, eventId, tokenWith(eventId, { blockNumber })),
    moves,
  );
}

export const ALONE_SOUND: readonly Alone[] = [
  ['who may join: the whole log', text],
  ['who may join: the moves alone', rewritten(moves)],
  // Only the chain shows that it was another one.
  ['another balance that the rule allows', ofMoves(BOB_JOINED, tokenWith(BOB_JOINED, { balance: '8' }))],
  ['balances in a block beyond 2^32', rewritten(inBlock(5_000_000_000))],
];

export const ALONE_BROKEN: readonly Alone[] = [
  ['an admission left out', rewritten(moves.toSpliced(ADMITTED - 1, 1)), ADMITTED + 1],
  ['an admission by another than the creator', rewritten(moves.with(ADMITTED - 1, admission({ by: BOB }))), ADMITTED],
  ['an admission of an agent on the list', rewritten([...moves.slice(0, ADMITTED), admission({})]), ADMITTED + 1],
  [
    'an admission after the lobby',
    rewritten([...moves.slice(0, PROPOSED), admission({ of: CAT, at: atOf(moves, PROPOSED), accountEventId: 3 })]),
    PROPOSED + 1,
  ],
  ['an admission of another agent than was asked for', ofMoves(ADMITTED, { did: CAT.did }), ADMITTED],
  ['a list of agents that nobody asked for', ofMoves(CREATED, { admission: { dids: [] } }), CREATED],
  ['a creation without the chain of its token', rewritten(without(moves, CREATED, 'token')), CREATED],
  ['a creation without the block of its token', ofMoves(CREATED, { token: { chainId: 31_337 } }), CREATED],
  ['a join without its balance', rewritten(without(moves, BOB_JOINED, 'token')), BOB_JOINED],
  ['a balance below the rule', ofMoves(BOB_JOINED, tokenWith(BOB_JOINED, { balance: '4' })), BOB_JOINED],
  [
    'a balance in another block than that of the creation',
    ofMoves(BOB_JOINED, tokenWith(BOB_JOINED, { blockNumber: 1 })),
    BOB_JOINED,
  ],
  [
    'a balance that no contract returns',
    ofMoves(BOB_JOINED, tokenWith(BOB_JOINED, { balance: String(2n ** 256n) })),
    BOB_JOINED,
  ],
  ['a join without a proven wallet', ofMoves(BOB_JOINED, { walletProven: false }), BOB_JOINED],
  ['two seats of one wallet', ofMoves(BOB_JOINED, { walletAddress: FIRST.address }), BOB_JOINED],
  ['two seats of one wallet in another case', twoSeats(), BOB_JOINED],
  ['an idea for another wallet than that of the seat', ofMoves(PROPOSED, { creatorWallet: THIRD.address }), PROPOSED],
  [
    'a join by an earlier account line than the creation before it',
    ofMoves(ANN_JOINED, { accountEventId: 1 }),
    CREATED,
    ADMITTED,
    ANN_JOINED,
  ],
  [
    'a pass by an earlier account line than a proposal',
    ofMoves(ANN_PASSED, { accountEventId: 2 }),
    PROPOSED,
    ANN_PASSED,
  ],
];

export async function soundAccounts(): Promise<readonly WithAccounts[]> {
  const retiredAt = atOf(ann, RETIRED);
  const provenAt = atOf(bob, PROVEN);
  const contract = await bobRegistered({ at: provenAt, signature: OF_CONTRACT, accepted: BLOCK });
  return [
    ['accounts: the whole log', text, ACCOUNTS],
    ['accounts: the moves alone', rewritten(moves), ACCOUNTS],
    ['accounts in another order', text, rewritten(bob) + rewritten(ann)],
    ['accounts line by line', text, interleaved()],
    ['an account whose first line is not published', text, toText(accountLines.slice(1))],
    ['an account of another agent beside them', text, ACCOUNTS + rewritten([registeredCat()])],
    ['accounts of no member', text, rewritten([registeredCat()])],
    ['a registration that nobody signed, which shows nothing', open, registeredOpen()],
    ['a wallet that is a contract, which only the chain knows', text, contract],
    ['a move 5 s after the retirement of its key', lastOfAnnAt(retiredAt + 5_000), ACCOUNTS],
    ['a proof issued 300 s before', text, await bobRegistered({ at: provenAt, issuedAt: provenAt - 300_000 })],
    ['a registration signed 60 s ahead', text, await bobRegistered({ at: provenAt + 60_000, acceptedAt: provenAt })],
    [
      'a proof followed by a registration that nobody signed, of the same wallet',
      ...(await bobUnsigned({ at: provenAt })),
    ],
    ['a retirement by a wallet that is a contract, which only the chain knows', text, await bobRetiredByContract(70)],
  ];
}

export async function undecidedAccounts(): Promise<readonly WithAccounts[]> {
  const at = atOf(bob, PROVEN);
  return [
    ['a registration 301 s old', text, await bobRegistered({ at: at - 301_000, acceptedAt: at })],
    ['a proof issued 301 s before', text, await bobRegistered({ at, issuedAt: at - 301_000 })],
    ['a proof issued 61 s later', text, await bobRegistered({ at, issuedAt: at + 61_000 })],
    ['a proof for another address than its request', text, await bobRegistered({ at, service: 'https://other.test' })],
    [
      'an account for another address than the moves',
      text,
      await bobRegistered({ at, origin: 'https://other.test', service: 'https://other.test' }),
    ],
    [
      'a proof for another address, followed by a registration that nobody signed',
      ...(await bobUnsigned({ at, service: 'https://other.test' })),
    ],
    [
      'a proof issued 20 h before, followed by a registration that nobody signed',
      ...(await bobUnsigned({ at, issuedAt: at - 72_000_000 })),
    ],
    [
      'an account for another address than the moves, followed by a registration that nobody signed',
      ...(await bobUnsigned({ at, origin: 'https://other.test', service: 'https://other.test' })),
    ],
  ];
}

export async function brokenAccounts(): Promise<readonly WithAccounts[]> {
  const at = atOf(bob, PROVEN);
  const retiredAt = atOf(ann, RETIRED);
  const [, second = '', ...rest] = accountLines;
  return [
    // Records of the accounts in moves.
    [
      'a move that names an account line that does not exist',
      ofMoves(LAST_OF_BOB, { accountEventId: 5 }),
      ACCOUNTS,
      LAST_OF_BOB,
    ],
    ['a join that names an account line of later', ofMoves(ANN_JOINED, { accountEventId: 3 }), ACCOUNTS, ANN_JOINED],
    ['a proposal by an account line that was replaced', ofMoves(PROPOSED, { accountEventId: 2 }), ACCOUNTS, PROPOSED],
    [
      'a join with another wallet than the account has',
      ofMoves(ANN_JOINED, { walletAddress: THIRD.address }),
      ACCOUNTS,
      ANN_JOINED,
    ],
    ['a join with another label than the account has', ofMoves(ANN_JOINED, { label: 'Bob' }), ACCOUNTS, ANN_JOINED],
    ['a join without the label of the account', rewritten(without(moves, ANN_JOINED, 'label')), ACCOUNTS, ANN_JOINED],
    ['a move that names the retirement', ofMoves(LAST_OF_ANN, { accountEventId: 4 }), ACCOUNTS, LAST_OF_ANN],
    ['a move 5.001 s after the retirement of its key', lastOfAnnAt(retiredAt + 5_001), ACCOUNTS, MOVES],
    [
      'a join with another wallet than a registration that nobody signed',
      open,
      registeredOpen(THIRD.address),
      JOINED_OPEN,
    ],
    ['an account line left out', text, toText([...accountLines.slice(0, 1), ...rest]), ...OF_ANN],
    ['an account line twice', text, toText([...accountLines.slice(0, 2), second, ...rest]), ...OF_ANN],
    [
      'an account line altered, and no hash set right',
      text,
      ACCOUNTS.replace('"personality":{}', '"personality":{"style":"x"}'),
      ...OF_ANN,
    ],
    ['an account that begins with another line', text, accountsOf({ and: bob.slice(PROVEN) }), ...OF_BOB],
    ['an account line older than the one before it', text, ofAnn(CHANGED, {}, { ts: iso(START) }), ...OF_ANN],
    ['the account of another agent', text, accountsOf({ and: ofOther(bob) }), ...OF_BOB],
    ['another agentId than the key has', text, ofAnn(REGISTERED, { agentId: 'agent-x' }), ...OF_ANN],
    ['a registration of another key', text, ofAnn(REGISTERED, { pubkeyHex: CAT.pubkeyHex }), ...OF_ANN],
    ['a line after the retirement', text, accountsOf({ and: [...bob, afterRetirement()] }), ...OF_BOB],
    // Signed requests.
    ['another wallet than was signed', text, ofAnn(PROVEN, { walletAddress: THIRD.address }), ...OF_ANN],
    ['another label than was signed', text, ofAnn(PROVEN, { label: 'Eve' }), ...OF_ANN],
    ['the request of another agent', text, ofAnn(PROVEN, {}, { request: requestOf(recordIn(bob, PROVEN)) }), ...OF_ANN],
    ['a registration that is made again', text, madeAgain(), ...OF_ANN],
    ['another personality than was signed', text, ofBob(CHANGED, { personality: { style: 'loud' } }), ...OF_BOB],
    ['a personality that nobody signed', text, ofBob(CHANGED, {}, { request: null }), ...OF_BOB],
    [
      'a registration a day and a second old',
      text,
      await bobRegistered({ at: at - 86_401_000, acceptedAt: at }),
      ...OF_BOB,
    ],
    // Wallet proofs.
    ['a proof left out', text, accountsOf({ of: without(ann, PROVEN, 'walletProof') }), ...OF_ANN],
    ['a proof in a line without a request', text, ofAnn(REGISTERED, { walletProof: proofIn(ann, PROVEN) }), ...OF_ANN],
    ['a proof with another signature', text, withProof({ signature: `0x${'11'.repeat(64)}1b` }), ...OF_ANN],
    ['a proof with another time', text, withProof({ issuedAt: iso(START + 1_000) }), ...OF_ANN],
    ['a proof with another service', text, withProof({ service: 'https://evil.test' }), ...OF_ANN],
    ['a proof that no key of the wallet signed', text, await bobRegistered({ at, signature: OF_CONTRACT }), ...OF_BOB],
    ['a proof a day and a second old', text, await bobRegistered({ at, issuedAt: at - 86_401_000 }), ...OF_BOB],
    ['a proof with the larger s', text, withProof({ signature: withLargerS(proofIn(ann, PROVEN)) }), ...OF_ANN],
    ['a proof by a key, with the block of a contract', text, await bobRegistered({ at, accepted: BLOCK }), ...OF_BOB],
    [
      'a proof by a contract, without the hash of its block',
      text,
      await bobRegistered({ at, signature: OF_CONTRACT, accepted: { chainId: 31_337, blockNumber: 41 } }),
      ...OF_BOB,
    ],
    ['a proof of which the request brought half', text, bobHalfProven(), ...OF_BOB],
    [
      'a retirement by a key, with the block of a contract',
      text,
      await bobRetired(SECOND, { accepted: BLOCK }),
      ...OF_BOB,
    ],
    ['a retirement that nobody asked for', text, ofAnn(RETIRED, {}, { request: null }), ...OF_ANN],
    ['a retirement by a wallet that was never proven', text, await bobRetired(THIRD), ...OF_BOB],
    [
      'a retirement that another wallet signed',
      text,
      await bobRetired(THIRD, { walletAddress: SECOND.address }),
      ...OF_BOB,
    ],
    [
      'a retirement signed a day and a second before',
      text,
      await bobRetired(SECOND, { issuedAt: atOf(bob, RETIRED) - 86_401_000 }),
      ...OF_BOB,
    ],
    [
      'a retirement in the name of a contract, by a wallet that a key proved',
      text,
      await bobRetired(SECOND, { accepted: { signature: '0xdead', ...BLOCK } }),
      ...OF_BOB,
    ],
    // Signed requests without a given registration.
    [
      'another patch than was signed, before any registration',
      text,
      patchAlone({ patch: { style: 'loud' } }),
      ...OF_BOB,
    ],
    [
      'a personality that lacks its patch, before any registration',
      text,
      patchAlone({ personality: { style: 'loud' } }),
      ...OF_BOB,
    ],
    // A claim without the line that proves it.
    ['a proven wallet, of whose account a later line alone is given', text, withoutRegistrations(), BOB_JOINED],
    // Forms that a service rejects.
    ...(await Promise.all(
      [
        ['a time without a T, and with a name of its zone', '2030-01-01 04:31:00 UTC'],
        ['a time without an offset', '2030-01-01T04:31:00'],
        ['a time in second 60', '2030-01-01T04:30:60Z'],
        ['a time whose offset has no colon', '2030-01-01T04:31:00+0000'],
      ].map(
        async ([form = '', issuedAt = '']): Promise<WithAccounts> => [
          `a retirement issued at ${form}`,
          text,
          await bobRetired(SECOND, { issuedAt }),
          ...OF_BOB,
        ],
      ),
    )),
    ['a retirement by a signature of 8,193 bytes', text, await bobRetiredByContract(8_193), ...OF_BOB],
    ['a retirement whose body says more, before any registration', text, retiredAlone({ junk: 1 }), ...OF_ANN],
    ['a registration with an e-mail address whose request is kept', text, bobWithEmail(), ...OF_BOB],
    ['a key in capitals', text, ofBob(REGISTERED, { pubkeyHex: inCapitals(BOB.pubkeyHex) }), ...OF_BOB],
    ['a second line that refers to none, as the first one that is given', text, withoutBefore(), ...OF_BOB],
    ['a block at another height than in the joins', text, await bobAtOtherHeight(), ...OF_BOB],
  ];
}

/** The same r with the order of the curve minus s, which recovers the same key. */
function withLargerS({ signature }: Line): string {
  const [, r = '', s = '', v = ''] = /^0x(.{64})(.{64})(.{2})$/.exec(String(signature)) ?? [];
  const larger = (CURVE_ORDER - BigInt(`0x${s}`)).toString(16).padStart(64, '0');
  return `0x${r}${larger}${v === '1b' ? '1c' : '1b'}`;
}

function admission({ by = ANN, of = BOB, at = atOf(moves, ADMITTED), accountEventId = 2 }): Line {
  const body = { did: of.did };
  const payload = { ...body, accountEventId };
  return signedLine({ by, at, type: 'chamber.admitted', path: 'admit', body, payload });
}

function twoSeats(): string {
  return ofMoves(BOB_JOINED, { walletAddress: FIRST.address.toLowerCase() });
}

function registeredCat(): Line {
  const content = { pubkeyHex: CAT.pubkeyHex, walletAddress: THIRD.address, personality: {} };
  const agentId = CAT.did.replace('did:key:', 'agent-');
  const line = { by: CAT, at: START, type: 'agent.registered', path: '/register', body: content };
  return signedAccountLine({ ...line, payload: { agentId, ...content } });
}

/** BOB's account in the sample log without admission: a registration with an e-mail address and without a request. */
function registeredOpen(wallet = payloadOf(recordIn(openRecords, JOINED_OPEN))['walletAddress'] ?? null): string {
  return rewritten(altered(bob, REGISTERED, { walletAddress: wallet }).slice(0, REGISTERED));
}

function ofOther(lines: readonly Line[]): Line[] {
  return lines.map((line) => (line === lines[1] ? { ...line, did: CAT.did } : line));
}

function madeAgain(): string {
  const again = { ...recordIn(ann, PROVEN), ts: recordIn(ann, CHANGED)['ts'] ?? null };
  return accountsOf({ of: [...ann.slice(0, CHANGED), again] });
}

/** The accounts, with only the line after BOB's proof, which has another payload. */
function patchAlone(payload: Line): string {
  return toText([
    ...accountLines.slice(0, ann.length),
    canonicalJson(recordIn(altered(bob, CHANGED, payload), CHANGED)),
  ]);
}

/** The accounts, where BOB's has only the line that follows its proof. */
function withoutRegistrations(): string {
  return toText([
    ...accountLines.slice(0, ann.length),
    ...accountLines.slice(ann.length + PROVEN, ann.length + CHANGED),
  ]);
}

function afterRetirement(): Line {
  const at = START + 4.9 * HOUR;
  const payload = { patch: { style: 'x' }, personality: { style: 'x' } };
  return { ...recordIn(bob, CHANGED), ts: iso(at), payload };
}

/** Lines of both agents alternately, each agent's in order. */
function interleaved(): string {
  const [ofAnn, ofBob] = [accountLines.slice(0, ann.length), accountLines.slice(ann.length)];
  return toText(ofAnn.flatMap((line, index) => [line, ...ofBob.slice(index, index + 1)]));
}

// Vectors of a chamber that restricts admission and of its members' accounts, derived from the sample log.
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
/** BOB's join in the sample log without admission. */
const JOINED_OPEN = 3;
const OF_ANN = eventsOf(ANN);
const OF_BOB = eventsOf(BOB);

const accountLines = ACCOUNTS.trimEnd().split('\n');
const accounts = parse(accountLines);
const [ann, bob] = [ANN, BOB].map(({ did }) => accounts.filter((line) => line['did'] === did)) as [Line[], Line[]];
/** Event 3 changes ANN's wallet and BOB's personality. */
const [REGISTERED, PROVEN, CHANGED, RETIRED] = [1, 2, 3, 4] as const;

type Alone = readonly [title: string, text: string, ...eventIds: number[]];
type WithAccounts = readonly [title: string, text: string, accounts: string, ...eventIds: number[]];

const rewritten = (lines: readonly Line[]) => toText(rechained(lines));
const recordIn = (lines: readonly Line[], eventId: number) => lines[eventId - 1] as Line;
const atOf = (lines: readonly Line[], eventId: number) => Date.parse(String(recordIn(lines, eventId)['ts']));
const iso = (millis: number) => new Date(millis).toISOString();

/** The lines, one of them without the named member of its payload. */
function without(lines: readonly Line[], eventId: number, member: string): Line[] {
  const { [member]: _, ...payload } = payloadOf(recordIn(lines, eventId));
  return lines.with(eventId - 1, { ...recordIn(lines, eventId), payload }) as Line[];
}

const alteredMoves = (eventId: number, payload: Line) => rewritten(altered(moves, eventId, payload));
const tokenWith = (eventId: number, changes: Line): Line => ({
  token: { ...(payloadOf(recordIn(moves, eventId))['token'] as Line), ...changes },
});

const accountsOf = ({ of = ann, and = bob }: { readonly of?: readonly Line[]; readonly and?: readonly Line[] }) =>
  rewritten(of) + rewritten(and);
const annWith = (eventId: number, payload: Line, members: Line = {}) =>
  accountsOf({ of: altered(ann, eventId, payload, members) });
const bobWith = (eventId: number, payload: Line, members: Line = {}) =>
  accountsOf({ and: altered(bob, eventId, payload, members) });
const proofIn = (lines: readonly Line[], eventId: number) => payloadOf(recordIn(lines, eventId))['walletProof'] as Line;
const withProof = (changes: Line) => annWith(PROVEN, { walletProof: { ...proofIn(ann, PROVEN), ...changes } });

/** The moves, with ANN's last move signed at that time. */
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
  /** The recorded block at which a contract accepted the signature. */
  readonly accepted?: Line;
}

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

/** BOB's account, whose registration holds only the time of a wallet proof. */
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

/** BOB's account, retired with a wallet's signature. */
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
  return bobWith(RETIRED, { walletAddress, walletProof });
}

/** BOB's account, retired by a contract wallet with a signature of that many bytes. */
async function bobRetiredByContract(bytes: number): Promise<string> {
  const contract = await bobRegistered({ at: atOf(bob, PROVEN), signature: OF_CONTRACT, accepted: BLOCK });
  const lines = parse(contract.trimEnd().split('\n')).filter(({ did }) => did === BOB.did);
  const proof = { ...proofIn(bob, RETIRED), signature: `0x${'c0'.repeat(bytes)}`, ...BLOCK };
  return accountsOf({ and: altered(lines, RETIRED, { walletProof: proof }) });
}

/** ANN's account with only its retirement, which has a different body. */
function annWithOnlyRetirement(body: Line): string {
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

function inUppercase(hex: string): string {
  return `0x${hex.slice(2).toUpperCase()}`;
}

/** BOB's account from its second line on, with a `prev` of zeros. */
function withoutPrev(): string {
  let prev: Json = NO_PREVIOUS;
  const given = bob.slice(PROVEN - 1).map((line) => {
    const text = canonicalJson({ ...line, prev });
    prev = toHex(leafHash(Buffer.from(text)));
    return text;
  });
  return rewritten(ann) + toText(given);
}

/** BOB's account, whose contract wallet was called at a block for which the joins record a different height. */
async function bobAtOtherHeight(): Promise<string> {
  const { blockHash = null, blockNumber } = payloadOf(recordIn(moves, BOB_JOINED))['token'] as Line;
  const accepted = { chainId: 31_337, blockHash, blockNumber: Number(blockNumber) + 1 };
  return await bobRegistered({ at: atOf(bob, PROVEN), signature: OF_CONTRACT, accepted });
}

/** BOB's moves and account with a different registration, then an unsigned one of the same wallet, which his moves name. */
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
/** A signature that only a contract can accept. */
const OF_CONTRACT = `0x${'c0'.repeat(65)}`;

/** The moves, with that block height in the creation and the joins. */
function inBlock(blockNumber: number): Line[] {
  return [CREATED, ANN_JOINED, BOB_JOINED].reduce<Line[]>(
    (lines, eventId) => altered(lines, eventId, tokenWith(eventId, { blockNumber })),
    moves,
  );
}

export const ALONE_SOUND: readonly Alone[] = [
  ['who may join: the whole log', text],
  ['who may join: the moves alone', rewritten(moves)],
  // Only the chain shows that the balance differs.
  ['a different balance that the rule allows', alteredMoves(BOB_JOINED, tokenWith(BOB_JOINED, { balance: '8' }))],
  ['balances in a block beyond 2^32', rewritten(inBlock(5_000_000_000))],
];

export const ALONE_BROKEN: readonly Alone[] = [
  ['an admission omitted', rewritten(moves.toSpliced(ADMITTED - 1, 1)), ADMITTED + 1],
  [
    'an admission by an agent other than the creator',
    rewritten(moves.with(ADMITTED - 1, admission({ by: BOB }))),
    ADMITTED,
  ],
  ['an admission of an agent on the list', rewritten([...moves.slice(0, ADMITTED), admission({})]), ADMITTED + 1],
  [
    'an admission after the lobby',
    rewritten([...moves.slice(0, PROPOSED), admission({ of: CAT, at: atOf(moves, PROPOSED), accountEventId: 3 })]),
    PROPOSED + 1,
  ],
  ['an admission of a different agent than requested', alteredMoves(ADMITTED, { did: CAT.did }), ADMITTED],
  ['an admission list that the creator did not request', alteredMoves(CREATED, { admission: { dids: [] } }), CREATED],
  ['a creation without the chain of its token', rewritten(without(moves, CREATED, 'token')), CREATED],
  ['a creation without the block of its token', alteredMoves(CREATED, { token: { chainId: 31_337 } }), CREATED],
  ['a join without its balance', rewritten(without(moves, BOB_JOINED, 'token')), BOB_JOINED],
  ['a balance below the rule', alteredMoves(BOB_JOINED, tokenWith(BOB_JOINED, { balance: '4' })), BOB_JOINED],
  [
    'a balance in a block other than the creation’s',
    alteredMoves(BOB_JOINED, tokenWith(BOB_JOINED, { blockNumber: 1 })),
    BOB_JOINED,
  ],
  ['a balance of 2^256', alteredMoves(BOB_JOINED, tokenWith(BOB_JOINED, { balance: String(2n ** 256n) })), BOB_JOINED],
  ['a join without a proven wallet', alteredMoves(BOB_JOINED, { walletProven: false }), BOB_JOINED],
  ['two seats with one wallet', alteredMoves(BOB_JOINED, { walletAddress: FIRST.address }), BOB_JOINED],
  ['two seats with one wallet in different letter case', twoSeats(), BOB_JOINED],
  ['an idea for a wallet other than the seat’s', alteredMoves(PROPOSED, { creatorWallet: THIRD.address }), PROPOSED],
  [
    'a join that names an earlier account line than the preceding creation',
    alteredMoves(ANN_JOINED, { accountEventId: 1 }),
    CREATED,
    ADMITTED,
    ANN_JOINED,
  ],
  [
    'a pass that names an earlier account line than a preceding proposal',
    alteredMoves(ANN_PASSED, { accountEventId: 2 }),
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
    ['accounts in a different order', text, rewritten(bob) + rewritten(ann)],
    ['accounts whose lines are interleaved', text, interleaved()],
    ['an account whose first line is not published', text, toText(accountLines.slice(1))],
    ['an additional account of a non-member', text, ACCOUNTS + rewritten([registeredCat()])],
    ['only the account of a non-member', text, rewritten([registeredCat()])],
    ['an unsigned registration, which proves nothing', open, registeredOpen()],
    ['a contract wallet, which only the chain can confirm', text, contract],
    ['a move 5 s after the retirement of its key', lastOfAnnAt(retiredAt + 5_000), ACCOUNTS],
    [
      'a proof issued 300 s before its request',
      text,
      await bobRegistered({ at: provenAt, issuedAt: provenAt - 300_000 }),
    ],
    [
      'a registration signed 60 s in the future',
      text,
      await bobRegistered({ at: provenAt + 60_000, acceptedAt: provenAt }),
    ],
    ['a proof followed by an unsigned registration of the same wallet', ...(await bobUnsigned({ at: provenAt }))],
    ['a retirement by a contract wallet, which only the chain can confirm', text, await bobRetiredByContract(70)],
  ];
}

export async function undecidedAccounts(): Promise<readonly WithAccounts[]> {
  const at = atOf(bob, PROVEN);
  return [
    ['a registration 301 s old', text, await bobRegistered({ at: at - 301_000, acceptedAt: at })],
    ['a proof issued 301 s before its request', text, await bobRegistered({ at, issuedAt: at - 301_000 })],
    ['a proof issued 61 s after its request', text, await bobRegistered({ at, issuedAt: at + 61_000 })],
    [
      'a proof for a different service address than its request',
      text,
      await bobRegistered({ at, service: 'https://other.test' }),
    ],
    [
      'an account for a different service address than the moves',
      text,
      await bobRegistered({ at, origin: 'https://other.test', service: 'https://other.test' }),
    ],
    [
      'a proof for a different service address, followed by an unsigned registration',
      ...(await bobUnsigned({ at, service: 'https://other.test' })),
    ],
    [
      'a proof issued 20 h before its request, followed by an unsigned registration',
      ...(await bobUnsigned({ at, issuedAt: at - 72_000_000 })),
    ],
    [
      'an account for a different service address than the moves, followed by an unsigned registration',
      ...(await bobUnsigned({ at, origin: 'https://other.test', service: 'https://other.test' })),
    ],
  ];
}

export async function brokenAccounts(): Promise<readonly WithAccounts[]> {
  const at = atOf(bob, PROVEN);
  const retiredAt = atOf(ann, RETIRED);
  const [, second = '', ...rest] = accountLines;
  return [
    // What moves record of accounts.
    [
      'a move that names an account line that does not exist',
      alteredMoves(LAST_OF_BOB, { accountEventId: 5 }),
      ACCOUNTS,
      LAST_OF_BOB,
    ],
    ['a join that names a later account line', alteredMoves(ANN_JOINED, { accountEventId: 3 }), ACCOUNTS, ANN_JOINED],
    [
      'a proposal that names a replaced account line',
      alteredMoves(PROPOSED, { accountEventId: 2 }),
      ACCOUNTS,
      PROPOSED,
    ],
    [
      'a join with a different wallet than the account’s',
      alteredMoves(ANN_JOINED, { walletAddress: THIRD.address }),
      ACCOUNTS,
      ANN_JOINED,
    ],
    [
      'a join with a different label than the account’s',
      alteredMoves(ANN_JOINED, { label: 'Bob' }),
      ACCOUNTS,
      ANN_JOINED,
    ],
    ['a join without the label of the account', rewritten(without(moves, ANN_JOINED, 'label')), ACCOUNTS, ANN_JOINED],
    ['a move that names the retirement', alteredMoves(LAST_OF_ANN, { accountEventId: 4 }), ACCOUNTS, LAST_OF_ANN],
    ['a move 5.001 s after the retirement of its key', lastOfAnnAt(retiredAt + 5_001), ACCOUNTS, MOVES],
    ['a join with a different wallet than an unsigned registration', open, registeredOpen(THIRD.address), JOINED_OPEN],
    ['an account line omitted', text, toText([...accountLines.slice(0, 1), ...rest]), ...OF_ANN],
    ['a duplicated account line', text, toText([...accountLines.slice(0, 2), second, ...rest]), ...OF_ANN],
    [
      'an altered account line without corrected hashes',
      text,
      ACCOUNTS.replace('"personality":{}', '"personality":{"style":"x"}'),
      ...OF_ANN,
    ],
    ['an account that begins with a personality change', text, accountsOf({ and: bob.slice(PROVEN) }), ...OF_BOB],
    ['an account line dated before its predecessor', text, annWith(CHANGED, {}, { ts: iso(START) }), ...OF_ANN],
    ['the account of a different agent', text, accountsOf({ and: ofOtherAgent(bob) }), ...OF_BOB],
    ['an agentId other than the key’s', text, annWith(REGISTERED, { agentId: 'agent-x' }), ...OF_ANN],
    ['a registration of a different key', text, annWith(REGISTERED, { pubkeyHex: CAT.pubkeyHex }), ...OF_ANN],
    ['a line after the retirement', text, accountsOf({ and: [...bob, afterRetirement()] }), ...OF_BOB],
    // Signed requests.
    ['a wallet other than the signed one', text, annWith(PROVEN, { walletAddress: THIRD.address }), ...OF_ANN],
    ['a label other than the signed one', text, annWith(PROVEN, { label: 'Eve' }), ...OF_ANN],
    [
      'the request of a different agent',
      text,
      annWith(PROVEN, {}, { request: requestOf(recordIn(bob, PROVEN)) }),
      ...OF_ANN,
    ],
    ['a replayed registration', text, replayedRegistration(), ...OF_ANN],
    ['a personality other than the signed one', text, bobWith(CHANGED, { personality: { style: 'loud' } }), ...OF_BOB],
    ['an unsigned personality change', text, bobWith(CHANGED, {}, { request: null }), ...OF_BOB],
    [
      'a registration a day and a second old',
      text,
      await bobRegistered({ at: at - 86_401_000, acceptedAt: at }),
      ...OF_BOB,
    ],
    // Wallet proofs.
    ['a proof omitted', text, accountsOf({ of: without(ann, PROVEN, 'walletProof') }), ...OF_ANN],
    [
      'a proof in a line without a request',
      text,
      annWith(REGISTERED, { walletProof: proofIn(ann, PROVEN) }),
      ...OF_ANN,
    ],
    ['a proof with a different signature', text, withProof({ signature: `0x${'11'.repeat(64)}1b` }), ...OF_ANN],
    ['a proof with a different time', text, withProof({ issuedAt: iso(START + 1_000) }), ...OF_ANN],
    ['a proof with a different service', text, withProof({ service: 'https://evil.test' }), ...OF_ANN],
    [
      'a proof that the wallet’s key did not sign',
      text,
      await bobRegistered({ at, signature: OF_CONTRACT }),
      ...OF_BOB,
    ],
    ['a proof a day and a second old', text, await bobRegistered({ at, issuedAt: at - 86_401_000 }), ...OF_BOB],
    ['a proof with the larger s', text, withProof({ signature: withLargerS(proofIn(ann, PROVEN)) }), ...OF_ANN],
    [
      'a proof by a key, with the block of a contract’s acceptance',
      text,
      await bobRegistered({ at, accepted: BLOCK }),
      ...OF_BOB,
    ],
    [
      'a proof by a contract, without the block hash',
      text,
      await bobRegistered({ at, signature: OF_CONTRACT, accepted: { chainId: 31_337, blockNumber: 41 } }),
      ...OF_BOB,
    ],
    ['a proof whose request holds only half of it', text, bobHalfProven(), ...OF_BOB],
    [
      'a retirement by a key, with the block of a contract’s acceptance',
      text,
      await bobRetired(SECOND, { accepted: BLOCK }),
      ...OF_BOB,
    ],
    ['a retirement without a request', text, annWith(RETIRED, {}, { request: null }), ...OF_ANN],
    ['a retirement by a wallet that was never proven', text, await bobRetired(THIRD), ...OF_BOB],
    [
      'a retirement signed by a different wallet',
      text,
      await bobRetired(THIRD, { walletAddress: SECOND.address }),
      ...OF_BOB,
    ],
    [
      'a retirement signed a day and a second before its line',
      text,
      await bobRetired(SECOND, { issuedAt: atOf(bob, RETIRED) - 86_401_000 }),
      ...OF_BOB,
    ],
    [
      'a retirement accepted by a contract, for a wallet that a key proved',
      text,
      await bobRetired(SECOND, { accepted: { signature: '0xdead', ...BLOCK } }),
      ...OF_BOB,
    ],
    // Signed requests for which no registration is given.
    [
      'a patch other than the signed one, before any registration',
      text,
      bobWithOnlyPatch({ patch: { style: 'loud' } }),
      ...OF_BOB,
    ],
    [
      'a personality that lacks its patch, before any registration',
      text,
      bobWithOnlyPatch({ personality: { style: 'loud' } }),
      ...OF_BOB,
    ],
    // A claim without the line that proves it.
    ['a proven wallet with only a later line of its account', text, withoutRegistrations(), BOB_JOINED],
    // Forms that a service rejects.
    ...(await Promise.all(
      [
        ['a time without a T and with a zone name', '2030-01-01 04:31:00 UTC'],
        ['a time without an offset', '2030-01-01T04:31:00'],
        ['a time with second 60', '2030-01-01T04:30:60Z'],
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
    [
      'a retirement whose body has an extra member, before any registration',
      text,
      annWithOnlyRetirement({ junk: 1 }),
      ...OF_ANN,
    ],
    ['a registration with an e-mail address whose request is kept', text, bobWithEmail(), ...OF_BOB],
    ['a key in uppercase', text, bobWith(REGISTERED, { pubkeyHex: inUppercase(BOB.pubkeyHex) }), ...OF_BOB],
    ['a second line that refers to no earlier line, given as the first', text, withoutPrev(), ...OF_BOB],
    ['a block at a different height than in the joins', text, await bobAtOtherHeight(), ...OF_BOB],
  ];
}

/** The same r with the group order minus s, which recovers the same key. */
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
  return alteredMoves(BOB_JOINED, { walletAddress: FIRST.address.toLowerCase() });
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

function ofOtherAgent(lines: readonly Line[]): Line[] {
  return lines.map((line) => (line === lines[1] ? { ...line, did: CAT.did } : line));
}

function replayedRegistration(): string {
  const again = { ...recordIn(ann, PROVEN), ts: recordIn(ann, CHANGED)['ts'] ?? null };
  return accountsOf({ of: [...ann.slice(0, CHANGED), again] });
}

/** The accounts, with BOB's reduced to the line after his proof, which has this payload. */
function bobWithOnlyPatch(payload: Line): string {
  return toText([
    ...accountLines.slice(0, ann.length),
    canonicalJson(recordIn(altered(bob, CHANGED, payload), CHANGED)),
  ]);
}

/** The accounts, with BOB's reduced to the line after his proof. */
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

function interleaved(): string {
  const [annLines, bobLines] = [accountLines.slice(0, ann.length), accountLines.slice(ann.length)];
  return toText(annLines.flatMap((line, index) => [line, ...bobLines.slice(index, index + 1)]));
}

// Vectors of chambers and accounts whose service withheld texts, derived from the sample logs and the service's fixed keys.
import { readFileSync } from 'node:fs';
import { thumbprintOf } from '../../src/crypto/jwk.ts';
import { withhold } from '../../src/crypto/stub.ts';
import { publicKeyOf, signWith } from '../../src/keys/private-key.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import { HOUR, START } from '../kit/clock.ts';
import { type Line, parse, rechained, toText } from './forge.ts';
import { payloadOf } from './forgeries.ts';
import { fixedKeys } from './sample.ts';

type Row = readonly [title: string, text: string, ...eventIds: number[]];
type RowWithAccounts = readonly [title: string, text: string, accounts: string, ...eventIds: number[]];
/** `originals` are additional lines given to the auditor. */
type RowWithOriginals = readonly [title: string, text: string, originals: string, ...eventIds: number[]];

const read = (name: string) =>
  readFileSync(new URL(`../../fixtures/logs/${name}.ndjson`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');

const LINES = read('chamber-with-amendments');
const OF_SEATS = read('chamber-with-admission');
const ACCOUNTS = read('chamber-with-admission.accounts');
const MOVES = 20;
const [CREATION, JOIN, PROPOSAL, PASS, COMMENT, AMENDMENT, REVEAL, SUBMITTED, DEPLOYED] = [
  1, 2, 4, 7, 10, 11, 19, 23, 24,
];
/** The proposals, comments and amendments. */
const SPEECHES = [4, 5, 8, 10, 11, 13, 14, 16];
/** BOB joins without a label. */
const [JOIN_OF_ANN, JOIN_OF_BOB] = [3, 4];

const LOG = 'c0ffee00'.repeat(4);
const keyOf = (seed: Uint8Array) => ({ publicKey: publicKeyOf(seed), sign: signWith(seed) });
const KEY = keyOf(fixedKeys(LOG).all('receipts')[0]?.seed as Uint8Array);
const FOREIGN = keyOf(new Uint8Array(32).fill(99));
/** The encoding of a curve point of order 4. */
const SMALL_ORDER = 'A'.repeat(43);
const TERMS = { at: START + 9 * HOUR, reason: 'personal-data', log: LOG, key: KEY } as const;

function stubOf(line: string, terms: Partial<Parameters<typeof withhold>[1]> = {}): string {
  const made = withhold(line, { ...TERMS, ...terms });
  if ('refused' in made) throw new Error(`${made.refused}: ${line}`);
  return made.stub;
}

function withheld(eventIds: readonly number[], lines: readonly string[] = LINES, terms = {}): readonly string[] {
  return lines.map((line, index) => (eventIds.includes(index + 1) ? stubOf(line, terms) : line));
}

/** Returns a stub with other members, signed again. */
function forged(stub: string, members: Line, terms: Line = {}, key = KEY): string {
  const changed = { ...(JSON.parse(stub) as Line), ...members };
  const { signature: _, ...stated } = { ...(changed['withheld'] as Line), ...terms };
  const text = `Chamber Coordination Service withheld line\n${canonicalJson({ ...changed, withheld: stated })}`;
  const signature = Buffer.from(key.sign(Buffer.from(text))).toString('base64url');
  return canonicalJson({ ...changed, withheld: { ...stated, signature } });
}

const lineOf = (eventId: number) => LINES[eventId - 1] as string;
const replaced = (eventId: number, line: string, lines: readonly string[] = LINES) =>
  toText(lines.with(eventId - 1, line));
const stubAt = (eventId: number) => stubOf(lineOf(eventId));
const without = (eventId: number, members: Line) => {
  const { payload } = JSON.parse(stubAt(eventId)) as { payload: Line };
  return { payload: { ...payload, ...members } };
};
const requestOf = (eventId: number) => (JSON.parse(lineOf(eventId)) as Line)['request'] as Line;
/** Stub members for an event that has no texts; the caller adds the signature. */
const stubMembersOver = (eventId: number) => {
  const { withheld: terms } = JSON.parse(stubAt(COMMENT)) as { withheld: Line };
  const record = JSON.parse(lineOf(eventId)) as Line;
  const [leaf = ''] = leavesOf(LINES).slice(eventId - 1);
  return forged(canonicalJson({ ...record, withheld: terms }), {}, { leaf });
};

/** The lines, with the comment's stub signed again with other terms. */
const withTerms = (terms: Line) => replaced(COMMENT, forged(stubAt(COMMENT), {}, terms));

/** The leaves, as the next lines record them. */
function leavesOf(lines: readonly string[]): readonly string[] {
  return parse(lines)
    .slice(1)
    .map(({ prev }) => String(prev));
}

/** The log of a service that does not deploy an idea and gives the reason `[withheld]`. */
function notDeployed(hidden: readonly number[], before: readonly Line[] = [], txHash: string | null = null): string {
  const records = parse(LINES);
  const { ts } = records[DEPLOYED - 1] as Line;
  const failed = { ideaId: 'idea-1', txHash, reason: '[withheld]' };
  const last = { ...(records[DEPLOYED - 1] as Line), type: 'idea.deploy_failed', payload: failed, ts: ts as string };
  return toText(withheld(hidden, rechained([...records.slice(0, SUBMITTED - 1), ...before, last])));
}

/** The log of a service that withholds the reason for a failed deployment. */
function reasonWithheld(): string {
  const records = parse(LINES);
  const { ts } = records[DEPLOYED - 1] as Line;
  const { txHash } = payloadOf(records[SUBMITTED - 1] as Line);
  const payload = { ideaId: 'idea-1', txHash: txHash as string, reason: 'reverted: Compost for all' };
  const failed = { ...(records[DEPLOYED - 1] as Line), type: 'idea.deploy_failed', payload, ts: ts as string };
  return toText(withheld([DEPLOYED], rechained([...records.slice(0, SUBMITTED), failed])));
}

export const SOUND: readonly Row[] = [
  ['a withheld comment', toText(withheld([COMMENT]))],
  ['a withheld proposal, which is amended later', toText(withheld([PROPOSAL]))],
  ['all proposals, comments and amendments withheld', toText(withheld(SPEECHES))],
  ['an idea withheld with the transaction that deployed it', toText(withheld([PROPOSAL, AMENDMENT, SUBMITTED]))],
  ['an idea withheld, but not yet the transaction that deployed it', toText(withheld([AMENDMENT]))],
  [
    'an amendment withheld later and for a different reason',
    toText(withheld([AMENDMENT], LINES, { reason: 'law', at: START + 99 * HOUR })),
  ],
  ['the moves alone, with a withheld comment', toText(withheld([COMMENT], LINES.slice(0, MOVES)))],
  ['a withheld last line', toText(withheld([COMMENT], LINES.slice(0, COMMENT)))],
  ['a withheld label of a member', toText(withheld([JOIN_OF_ANN], OF_SEATS))],
  ['an idea not deployed because of its withheld text', notDeployed([AMENDMENT])],
  ['a withheld reason of a failed deployment', reasonWithheld()],
];

export const UNDECIDED: readonly Row[] = [
  ['a withheld creation: only the stub states the key that signed it', toText(withheld([CREATION]))],
  [
    'a comment withheld under a key that the chamber does not pin',
    toText(withheld([COMMENT], LINES, { key: FOREIGN })),
  ],
  [
    'an idea not deployed because of a withheld text, with a transaction that is not in the log',
    notDeployed([AMENDMENT], [], `0x${'5a'.repeat(32)}`),
  ],
];

export const BROKEN: readonly Row[] = [
  ['a stub over a reveal', replaced(REVEAL, stubMembersOver(REVEAL)), REVEAL],
  ['a stub over a pass', replaced(PASS, stubMembersOver(PASS)), PASS],
  ['a stub over a commitment on the chain', replaced(22, stubMembersOver(22)), 22],
  [
    'a stub that still holds the comment',
    replaced(COMMENT, forged(stubAt(COMMENT), without(COMMENT, { comment: 'Who?' }))),
    COMMENT,
  ],
  [
    'a stub that still holds the refinement',
    replaced(COMMENT, forged(stubAt(COMMENT), without(COMMENT, { refinement: null }))),
    COMMENT,
  ],
  [
    'a stub that still holds the request',
    replaced(COMMENT, forged(stubAt(COMMENT), { request: requestOf(COMMENT) })),
    COMMENT,
  ],
  [
    'a stub that still holds the description',
    replaced(AMENDMENT, forged(stubAt(AMENDMENT), without(AMENDMENT, { description: 'Two bins.' }))),
    AMENDMENT,
  ],
  [
    'a stub with an unknown reason',
    replaced(COMMENT, forged(stubAt(COMMENT), {}, { reason: 'embarrassing' })),
    COMMENT,
  ],
  ['a stub with an extra member', replaced(COMMENT, forged(stubAt(COMMENT), {}, { note: 'x' })), COMMENT],
  [
    'a stub with the signature of another stub',
    replaced(
      COMMENT,
      canonicalJson({
        ...(JSON.parse(stubAt(COMMENT)) as Line),
        withheld: {
          ...((JSON.parse(stubAt(COMMENT)) as Line)['withheld'] as Line),
          signature: ((JSON.parse(stubAt(AMENDMENT)) as Line)['withheld'] as Line)['signature'] as string,
        },
      }),
    ),
    COMMENT,
  ],
  [
    'a stub whose keyid is not its key’s',
    replaced(
      COMMENT,
      forged(
        stubAt(COMMENT),
        {},
        { key: ((JSON.parse(stubOf(lineOf(COMMENT), { key: FOREIGN })) as Line)['withheld'] as Line)['key'] as string },
        FOREIGN,
      ),
    ),
    COMMENT,
  ],
  [
    'a stub with a different author and the original signature',
    replaced(
      COMMENT,
      canonicalJson({
        ...(JSON.parse(stubAt(COMMENT)) as Line),
        did: (JSON.parse(lineOf(JOIN + 1)) as Line)['did'] as string,
      }),
    ),
    COMMENT,
  ],
  [
    'a stub with a different author, who was out of turn',
    replaced(COMMENT, forged(stubAt(COMMENT), { did: (JSON.parse(lineOf(JOIN + 1)) as Line)['did'] as string })),
    COMMENT,
  ],
  ['a stub of a different chamber', replaced(COMMENT, forged(stubAt(COMMENT), { chamberId: 2 })), COMMENT],
  [
    'a stub with a different leaf',
    replaced(COMMENT, forged(stubAt(COMMENT), {}, { leaf: `0x${'12'.repeat(32)}` })),
    COMMENT,
    AMENDMENT,
  ],
  [
    'a stub of a different log than the other stubs',
    replaced(AMENDMENT, stubOf(lineOf(AMENDMENT), { log: '1'.repeat(32) }), withheld([COMMENT])),
    AMENDMENT,
  ],
  [
    'a stub that turns a comment into another type of the same phase',
    replaced(
      COMMENT,
      forged(stubAt(COMMENT), {
        type: 'chamber.proposed',
        payload: { ...payloadOf(JSON.parse(stubAt(PROPOSAL)) as Line), ideaId: 'idea-4', slot: 4, ticker: 'NEW' },
      }),
    ),
    COMMENT,
  ],
  [
    'a line that only looks like a stub',
    replaced(COMMENT, canonicalJson({ ...(JSON.parse(lineOf(COMMENT)) as Line), withheld: null })),
    COMMENT,
  ],
  [
    'a comment that lacks its refinement without a stub',
    replaced(
      COMMENT,
      canonicalJson({
        ...(JSON.parse(lineOf(COMMENT)) as Line),
        payload: payloadOf(JSON.parse(stubAt(COMMENT)) as Line),
      }),
    ),
    COMMENT,
  ],
  ['a withheld transaction of an idea whose texts are not withheld', toText(withheld([SUBMITTED])), SUBMITTED],
  ['an idea not deployed because of a text that no stub withholds', notDeployed([]), SUBMITTED],
  ['an idea not deployed although only a comment is withheld', notDeployed([COMMENT]), SUBMITTED],
  [
    'an idea not deployed because of a withheld text, after its transaction',
    notDeployed([AMENDMENT], [parse(LINES)[SUBMITTED - 1] as Line]),
    DEPLOYED,
  ],
  ['a stub that names its log in uppercase', withTerms({ log: LOG.toUpperCase() }), COMMENT],
  ['a stub that names no log', withTerms({ log: '' }), COMMENT],
  ['a stub dated on a day that does not exist', withTerms({ at: '2030-02-30T00:00:00.000Z' }), COMMENT],
  ['a stub dated without milliseconds', withTerms({ at: '2030-01-01T09:00:00Z' }), COMMENT],
  [
    'a stub under a key of small order',
    withTerms({ key: SMALL_ORDER, keyid: thumbprintOf(new Uint8Array(32)) }),
    COMMENT,
  ],
  ['a stub whose key is 31 bytes long', withTerms({ key: 'A'.repeat(42) }), COMMENT],
];

const account = (eventIds: readonly number[]) => toText(withheld(eventIds, ACCOUNTS));
/** ANN's second registration, which has a label. */
const LABELLED = 2;

export const SOUND_ACCOUNTS: readonly RowWithAccounts[] = [
  [
    'a withheld registration, and the label of the seat',
    toText(withheld([JOIN_OF_ANN], OF_SEATS)),
    account([LABELLED]),
  ],
  ['a withheld personality', toText(OF_SEATS), account([7])],
];

export const BROKEN_ACCOUNTS: readonly RowWithAccounts[] = [
  [
    'a stub of a join whose account has no label',
    toText(OF_SEATS.with(JOIN_OF_BOB - 1, stubOfUnlabelledJoin(JOIN_OF_BOB))),
    toText(ACCOUNTS),
    JOIN_OF_BOB,
  ],
  [
    'a withheld registration with a different wallet',
    toText(OF_SEATS),
    toText(
      ACCOUNTS.with(
        LABELLED - 1,
        forged(stubOf(ACCOUNTS[LABELLED - 1] as string), {
          payload: {
            ...payloadOf(JSON.parse(stubOf(ACCOUNTS[LABELLED - 1] as string)) as Line),
            walletAddress: `0x${'11'.repeat(20)}`,
          },
        }),
      ),
    ),
    ...[1, 2, 3, 5, 6, 8, 9, 11],
  ],
  [
    'a stub of a registration that still holds the label',
    toText(OF_SEATS),
    toText(
      ACCOUNTS.with(
        LABELLED - 1,
        forged(stubOf(ACCOUNTS[LABELLED - 1] as string), {
          payload: { ...payloadOf(JSON.parse(stubOf(ACCOUNTS[LABELLED - 1] as string)) as Line), label: 'Ann' },
        }),
      ),
    ),
    ...[1, 2, 3, 5, 6, 8, 9, 11],
  ],
];

/** A stub of a join that had no label. */
function stubOfUnlabelledJoin(eventId: number): string {
  const record = JSON.parse(OF_SEATS[eventId - 1] as string) as Line;
  const { withheld: terms } = JSON.parse(stubAt(COMMENT)) as { withheld: Line };
  const leaf = leavesOf(OF_SEATS)[eventId - 1] as string;
  return forged(canonicalJson({ ...record, withheld: terms }), {}, { leaf });
}

/** A stub with the leaf of a join that had no label, and the original join. */
function withoutLabel(): readonly [text: string, originals: string] {
  return [
    toText(OF_SEATS.with(JOIN_OF_BOB - 1, stubOfUnlabelledJoin(JOIN_OF_BOB))),
    toText([OF_SEATS[JOIN_OF_BOB - 1] as string]),
  ];
}

const original = (eventId: number) => toText([lineOf(eventId)]);
const { key: foreignKey, keyid: foreignKeyId } = (JSON.parse(stubOf(lineOf(COMMENT), { key: FOREIGN })) as Line)[
  'withheld'
] as Line;
const ofForeignKey = { key: foreignKey, keyid: foreignKeyId } as Line;
const lyingStub = forged(stubAt(COMMENT), without(COMMENT, { stance: 'for' }));

export const SOUND_ORIGINALS: readonly RowWithOriginals[] = [
  ['a withheld comment and its original line', toText(withheld([COMMENT])), original(COMMENT)],
  ['a withheld creation and its original line, which pins the key', toText(withheld([CREATION])), original(CREATION)],
  [
    'an idea withheld with its transaction, and the original lines',
    toText(withheld([PROPOSAL, AMENDMENT, SUBMITTED])),
    toText([PROPOSAL, AMENDMENT, SUBMITTED].map(lineOf)),
  ],
  [
    'a withheld comment, and an earlier stub of it with a different reason',
    toText(withheld([COMMENT])),
    toText(withheld([COMMENT], [...LINES.slice(0, COMMENT)], { reason: 'law' }).slice(COMMENT - 1)),
  ],
  [
    'a stub, and another stub of its event with a different stance, signed with a foreign key',
    toText(withheld([COMMENT])),
    toText([forged(lyingStub, {}, ofForeignKey, FOREIGN)]),
  ],
  [
    'a stub, and another stub of its event with a different stance and an invalid signature',
    toText(withheld([COMMENT])),
    toText([lyingStub.replace(/"signature":"[^"]*"\}/, `"signature":"${'A'.repeat(86)}"}`)]),
  ],
  [
    'a stub, and another log’s stub of the same event number with a different stance',
    toText(withheld([COMMENT])),
    toText([forged(lyingStub, {}, { log: 'c0ffee01'.repeat(4) })]),
  ],
];

export const BROKEN_ORIGINALS: readonly RowWithOriginals[] = [
  ['a stub that changes a stance, and the original line', replaced(COMMENT, lyingStub), original(COMMENT), COMMENT],
  [
    'a stub, and another stub of its event with a different stance',
    toText(withheld([COMMENT])),
    toText([lyingStub]),
    COMMENT,
  ],
  ['a stub of a join, and the original line, which has no label', ...withoutLabel(), JOIN_OF_BOB],
];

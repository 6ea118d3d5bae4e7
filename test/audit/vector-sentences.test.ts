// The auditor's sentences about some vectors, from the command and from the core in a browser.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { audit } from './forge.ts';
import { ALTERED, ILLEGAL } from './forgeries.ts';
import type { Vector } from './vectors.ts';

const folder = fileURLToPath(new URL('../../fixtures/logs/vectors', import.meta.url));
const read = (name: string) => readFileSync(`${folder}/${name}`, 'utf8');
const index = JSON.parse(read('index.json')) as readonly Vector[];

/** A part of a finding, or of a note that names an option. */
const SENTENCES: readonly (readonly [title: string, check: string, sentence: string])[] = [
  ...ILLEGAL.map(({ title, code }) => [title, 'rules', `FORUM_ERR_${code}`] as const),
  ...ALTERED.map(([title, eventId, _, check]) => [title, check, `event ${eventId}`] as const),
  // The error of a late reveal does not name the expected phase.
  [
    'a late reveal',
    'rules',
    'FORUM_ERR_PHASE: expected phase ALLOCATE_REVEAL before 2030-01-01T05:00:00.000Z, actual phase ALLOCATE_REVEAL after its end: the chamber is being committed',
  ],
  ['a key of small order', 'signature', 'the public key is a point of small order'],
  ['a signature ten minutes and a second ahead', 'age', 'but at most 600 s are accepted'],
  ['a signature a day and a second old', 'age', 'but at most 86400 s are accepted'],
  ['a signature in the second in which it expired', 'age', 'and the signature had expired'],
  ['a pass omitted by a service that rewrites its log', 'root', 'event 18 commits'],
  ['one token for two ideas', 'service-events', 'as the token of idea-2, which is the token of idea-1'],
  ['a transaction on a different chain', 'transactions', 'is for chain 1, although the log began with chain 31337'],
  ['a transaction with more data than its call', 'transactions', 'is not a signed call of the contracts'],
  ['a transaction that transfers value', 'transactions', 'sends 1 wei, which the contract does not accept'],
  ['a transaction dated before the end of the reveals', 'service-events', 'comes before the reveal deadline'],
  ['a service event among the moves', 'service-events', 'event 10'],
  ['a commitment in a block 16 s older than the end of the reveals', 'service-events', '--rpc queries the chain'],
  ...[
    'a commitment by a transaction that is not logged',
    'a move and the commitment’s transactions omitted, root and count corrected',
    'a move and all transactions omitted, root and count corrected',
  ].map((title) => [title, 'transactions', 'is not in the log: --rpc queries the chain'] as const),
  ['an admission omitted', 'rules', 'is not on the list of chamber 1'],
  ['an admission by an agent other than the creator', 'rules', 'only the creator'],
  ['a join without its balance', 'rules', 'does not record'],
  ['a balance below the rule', 'rules', 'must hold at least 5'],
  ['a balance in a block other than the creation’s', 'payload', 'token is'],
  ['a creation without the chain of its token', 'rules', 'does not record'],
  ['a creation without the block of its token', 'rules', 'does not record'],
  ['an admission list that the creator did not request', 'payload', 'admission is'],
  ['two seats with one wallet', 'rules', 'already has a seat'],
  ['a join without a proven wallet', 'rules', 'provenWallets: '],
  ['an idea for a wallet other than the seat’s', 'payload', 'creatorWallet is'],
  ['an admission of a different agent than requested', 'payload', 'did is'],
  ['two wallets from one account line', 'registration', ` for 0x${'11'.repeat(20)}, but event 3 names it for 0x15d34`],
  ['an account line before that of the creation', 'registration', 'although event 1 had already named event 2'],
  [
    'a join that names an earlier account line than the preceding creation',
    'registration',
    'event 3 names event 1 of the',
  ],
  ['a join that names a later account line', 'registration', 'event 3: it is earlier than event 3'],
  ['the request of a different agent', 'registration', 'recorded as a move of'],
  ['a wallet other than the signed one', 'registration', 'does not match its request'],
  ['a replayed registration', 'registration', 'reuses the signature of an earlier line'],
  ['an unsigned personality change', 'registration', 'event 3 of the account'],
  ['an unsigned personality change', 'registration', 'has no signature'],
  ['an account that begins with a personality change', 'registration', 'is agent.personality_changed'],
  ['an agentId other than the key’s', 'registration', 'registers another key'],
  ['an account line omitted', 'registration', 'is in the place of event 2'],
  ['a proof omitted', 'registration', 'lacks the wallet proof of its request'],
  ['a proof in a line without a request', 'registration', 'contains a wallet proof without its request'],
  ['a retirement without a request', 'registration', 'has no signature'],
  ['a retirement by a wallet that was never proven', 'registration', ', which was never proven'],
  ['a retirement signed by a different wallet', 'registration', ' did not sign'],
  [
    'a retirement signed a day and a second before its line',
    'registration',
    'contains a wallet’s signature, which was signed',
  ],
  ['a line after the retirement', 'registration', 'comes after the retirement'],
  ['a move that names the retirement', 'registration', 'which retired the key'],
];

test('each expected sentence belongs to a vector', () => {
  const titles = new Set(index.map(({ title }) => title));
  expect(SENTENCES.filter(([title]) => !titles.has(title))).toEqual([]);
});

const isNamed = ({ title }: Vector) => SENTENCES.some(([of]) => of === title);

test.each(index.filter(isNamed))('the findings name the reason: $title ($file)', async ({ file, accounts, title }) => {
  // `audit` also compares the findings with those of the core in a browser.
  const { check } = await audit(read(file), accounts ? { accounts: read(accounts) } : {});
  for (const [, name, sentence] of SENTENCES.filter(([of]) => of === title)) {
    const { findings, note } = check(name as Parameters<typeof check>[0]);
    const texts = [note, ...findings.map((finding) => finding.sentence)];
    expect(texts).toContainEqual(expect.stringContaining(sentence));
  }
});

// Compares members' accounts with a chamber's lines, also in logs that a service forged: which wallet a key was bound to, and when.
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from 'vitest';
import { listedAccounts } from '../../src/audit/account/accounts.ts';
import { auditContext } from '../../src/audit/context.ts';
import { readLines } from '../../src/audit/line/input.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import type { Signer } from '../kit/signer.ts';
import { registrationOf, TestService } from '../kit/test-service.ts';
import {
  accountOf,
  altered,
  audit,
  type Json,
  type Line,
  parse,
  rechained,
  signedAccountLine,
  toText,
} from './forge.ts';

const WALLET = `0x${'ab'.repeat(20)}`;
const OTHER_WALLET = `0x${'cd'.repeat(20)}`;

let service: TestService;
let ann: Signer;
let moves: Line[];
let account: Line[];

async function register(by: Signer, walletAddress: string) {
  const { operatorEmail: _, ...content } = registrationOf(by);
  await service.must('POST', '/register', { by, body: { ...content, walletAddress } });
}

/** ANN registers, signs her registration and proposes; a minute later she changes her wallet. */
beforeEach(async () => {
  service = new TestService();
  ann = await service.agent();
  service.clock.advance(1_000);
  await register(ann, WALLET);
  await openChamber(service, [ann]);
  await enterPhase(service, 1, 'PROPOSAL');
  await service.must('POST', '/chambers/1/propose', { by: ann, body: { name: 'N', ticker: 'T' } });
  moves = parse(await service.lines(1));
  service.clock.advance(60_000);
  await register(ann, OTHER_WALLET);
  account = await accountOf(service, ann);
});

const JOIN = 2;
const PROPOSAL = 3;

async function registrations(changes: { readonly moves?: Line[]; readonly account?: Line[] } = {}) {
  const accounts = toText(rechained(changes.account ?? account));
  const { broken, check } = await audit(toText(rechained(changes.moves ?? moves)), { accounts });
  const { verdict, findings, note } = check('registration');
  return {
    broken,
    verdict,
    sentence: findings[0]?.sentence,
    sentences: findings.map(({ sentence }) => sentence),
    note,
    named: findings.flatMap(({ eventIds }) => eventIds),
  };
}

function memberOf(line: Line | undefined, name: string): Json {
  return line?.[name] ?? null;
}

test('wallets from signed lines are verified', async () => {
  expect(account.map(({ request }) => request === null)).toEqual([true, false, false]);
  expect(await registrations()).toMatchObject({ broken: [], verdict: 'verified' });
});

test.each([
  [
    'Windows line breaks',
    (text: string) => text.replaceAll('\n', '\r\n'),
    'Windows line breaks (CRLF), first after line 1',
  ],
  ['a byte order mark', (text: string) => `\uFEFF${text}`, 'begins with a byte order mark'],
])('a file of accounts with %s has exactly that finding', async (_, convert, problem) => {
  const { check } = await audit(toText(rechained(moves)), { accounts: convert(toText(rechained(account))) });
  expect(check('registration').findings).toEqual([{ eventIds: [], sentence: expect.stringContaining(problem) }]);
});

test('a compressed file of accounts is rejected as compressed', async () => {
  const lines = readLines(Readable.from([gzipSync(toText(rechained(account)))]));
  await expect(listedAccounts(lines, auditContext())).rejects.toThrow('the accounts file is compressed with gzip');
});

test('an audit without accounts reports nothing as broken and names the option', async () => {
  const { broken, check } = await audit(toText(rechained(moves)));
  expect([broken, check('registration')]).toMatchObject([[], { verdict: 'not evaluated' }]);
  expect(check('registration').note).toContain('--accounts');
});

describe('a service with false account lines', () => {
  test('a service that gives the token to a different wallet is caught', async () => {
    const forged = altered(moves, PROPOSAL, { creatorWallet: OTHER_WALLET });
    const found = await registrations({ moves: forged });
    expect(found).toMatchObject({ broken: ['registration'], named: [JOIN, PROPOSAL, PROPOSAL] });
    expect(found.sentences).toEqual([
      expect.stringContaining(`for ${OTHER_WALLET}, but event ${JOIN} names it for ${WALLET}`),
      expect.stringContaining(
        `creatorWallet is ${OTHER_WALLET}, but event 2 of the account of ${ann.did} binds ${WALLET}`,
      ),
    ]);
  });

  test.each<[string, Line]>([
    ['walletAddress', { walletAddress: OTHER_WALLET }],
    ['walletProven', { walletProven: true }],
    ['label', { label: 'Bob' }],
  ])('a service that records a %s other than the account’s at the join is caught', async (member, recorded) => {
    const found = await registrations({ moves: altered(moves.slice(0, JOIN), JOIN, recorded) });
    expect(found).toMatchObject({ broken: ['registration'], named: [JOIN] });
    expect(found.sentence).toContain(`event ${JOIN}: ${member} is ${recorded[member]}, but event 2 of the account`);
  });

  test('a service that names a missing account line is caught', async () => {
    const forged = altered(moves, PROPOSAL, { accountEventId: 4 });
    expect((await registrations({ moves: forged })).sentence).toContain('which does not exist');
  });

  test('a service that names an account line replaced more than 5 s earlier is caught', async () => {
    const at = Date.parse(memberOf(moves[PROPOSAL - 1], 'ts') as string);
    const later = (millis: number) => {
      const { operatorEmail: _, ...content } = registrationOf(ann);
      const body = { ...content, walletAddress: OTHER_WALLET };
      const move = { by: ann, at: at - millis, type: 'agent.registered', path: '/register', body, payload: {} };
      const { ts, request } = signedAccountLine(move);
      return [...account.slice(0, 2), { ...account[2], ts, request } as Line];
    };
    expect(await registrations({ account: later(5_000) })).toMatchObject({ broken: [], verdict: 'verified' });
    const { broken, sentence } = await registrations({ account: later(5_001) });
    expect(broken).toEqual(['registration']);
    expect(sentence).toContain('although event 3 was already 5.001 s old');
  });

  test('a service that omits only a proposal’s account line is caught, with or without accounts', async () => {
    const [proposal] = [moves[PROPOSAL - 1] as Line];
    const { accountEventId: _, ...payload } = memberOf(proposal, 'payload') as Line;
    const forged = moves.with(PROPOSAL - 1, { ...proposal, payload: { ...payload, creatorWallet: OTHER_WALLET } });
    expect(await registrations({ moves: forged })).toMatchObject({
      broken: ['registration'],
      named: [PROPOSAL, PROPOSAL],
    });
    expect((await audit(toText(rechained(forged)))).broken).toEqual(['registration']);
  });

  test('a service that omits all account lines but keeps the wallets of joins is caught', async () => {
    const older = moves.map(({ payload, ...line }) => {
      const { accountEventId: _, ...rest } = payload as Line;
      return { ...line, payload: rest };
    });
    expect((await audit(toText(rechained(older)))).broken).toEqual(['registration']);
  });

  test('a service that omits all account lines and names an unbound wallet is caught', async () => {
    const older = (creatorWallet: Json) =>
      moves.map(({ payload, ...line }) => {
        const { accountEventId: _, walletAddress: __, walletProven: ___, ...rest } = payload as Line;
        return { ...line, payload: 'creatorWallet' in rest ? { ...rest, creatorWallet } : rest };
      });
    expect(await registrations({ moves: older(WALLET) })).toMatchObject({ broken: [], verdict: 'not evaluated' });
    expect(await registrations({ moves: older(OTHER_WALLET) })).toMatchObject({
      broken: ['registration'],
      named: [PROPOSAL],
    });
  });

  test('a service that delays a registration for hours is caught unless the caller allows that delay', async () => {
    const later = [
      account[0],
      { ...account[1], ts: new Date(Date.parse(memberOf(account[1], 'ts') as string) + 400e3).toISOString() },
    ];
    const lines = toText(
      rechained(
        moves.map((line) => ({
          ...line,
          ts: new Date(Date.parse(memberOf(line, 'ts') as string) + 401e3).toISOString(),
        })),
      ),
    );
    const accounts = toText(rechained(later as Line[]));
    expect((await audit(lines, { accounts })).check('registration').verdict).toBe('undecided');
    expect((await audit(lines, { accounts, maxAgeSeconds: 500 })).check('registration').verdict).not.toBe('undecided');
  });

  test('a service that lets an agent join before it registers is caught in a log from an earlier release', async () => {
    const older = moves.map(({ payload, ...line }) => {
      const { accountEventId: _, walletAddress: __, walletProven: ___, ...rest } = payload as Line;
      return { ...line, payload: rest };
    });
    const late = new Date(Date.parse(memberOf(moves[1], 'ts') as string) + 1).toISOString();
    const { named, sentence } = await registrations({ moves: older, account: [{ ...(account[0] as Line), ts: late }] });
    expect([named.slice(0, 2), sentence]).toEqual([[1, 2], 'event 1: its agent was not registered yet']);
  });
});

test('the note names agents without a signed line', async () => {
  const bob = await service.agent();
  await openChamber(service, [bob]);
  const accounts = toText(rechained(await accountOf(service, bob)));
  const lines = toText(await service.lines(2));
  const { broken, check } = await audit(lines, { accounts });
  expect([broken, check('registration').verdict]).toEqual([[], 'not evaluated']);
  expect(check('registration').note).toContain(`no signed line shows the wallet of 1 agent: ${bob.did}`);
});

test('unpublished lines before the first published one count as unsigned', async () => {
  const { broken, check } = await audit(toText(rechained(moves)), { accounts: toText(rechained(account).slice(2)) });
  expect([broken, check('registration').verdict]).toEqual([[], 'not evaluated']);
});

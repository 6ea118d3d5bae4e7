// Wallet proofs and retirements, verified from the lines alone, also in logs that a service forged.
import { beforeEach, describe, expect, test } from 'vitest';
import { compareAccounts } from '../../src/audit/account/compare-accounts.ts';
import type { CheckResult } from '../../src/audit/report/findings.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import type { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, TestService } from '../kit/test-service.ts';
import { agentWith, proofBy, provenRegistration, retirementBy, walletOf } from '../kit/wallets.ts';
import {
  accountOf,
  accountsOf,
  altered,
  audit,
  auditLines,
  type Line,
  parse,
  rechained,
  signedAccountLine,
  toText,
} from './forge.ts';

const [WALLET, OTHER] = [walletOf(0), walletOf(1)];

let service: TestService;
let ann: Signer;
let moves: Line[];
let account: Line[];

/** ANN proves her wallet, joins and proposes; a minute later she retires. */
beforeEach(async () => {
  service = new TestService();
  ann = await agentWith(service, WALLET);
  await openChamber(service, [ann]);
  await enterPhase(service, 1, 'PROPOSAL');
  await service.must('POST', '/chambers/1/propose', { by: ann, body: { name: 'N', ticker: 'T' } });
  moves = parse(await service.lines(1));
  service.clock.advance(60_000);
});

async function retired(by: 'key' | 'wallet'): Promise<void> {
  if (by === 'key') await service.must('POST', '/me/retire', { by: ann });
  else {
    const body = await retirementBy(WALLET, ann.did, { issuedAt: new Date(service.clock.read()).toISOString() });
    await service.must('POST', `/agents/${ann.did}/retire`, { body });
  }
  account = await accountOf(service, ann);
}

const PROOF = 2;
const RETIREMENT = 3;
const PROPOSAL = 3;

interface Changes {
  readonly moves?: Line[];
  readonly account?: Line[];
  readonly origins?: readonly string[];
}

async function registration({ moves: lines = moves, account: entries = account, origins }: Changes = {}) {
  const accounts = toText(rechained(entries));
  const { broken, check } = await audit(toText(rechained(lines)), { accounts, ...(origins && { origins }) });
  const { verdict, findings, note } = check('registration');
  return { broken, verdict, sentence: findings[0]?.sentence, note };
}

function payloadOf(lines: readonly Line[], eventId: number): Line {
  return (lines[eventId - 1] as Line)['payload'] as Line;
}

function proofIn(eventId: number): Line {
  return payloadOf(account, eventId)['walletProof'] as Line;
}

test.each(['key', 'wallet'] as const)('a proven wallet and a retirement by the %s are verified', async (by) => {
  await retired(by);
  expect(account.map(({ type }) => type)).toEqual(['agent.registered', 'agent.registered', 'agent.retired']);
  expect(await registration()).toMatchObject({ broken: [], verdict: 'verified' });
  expect(await registration({ origins: [PUBLIC_URL] })).toMatchObject({ broken: [], verdict: 'verified' });
});

describe('broken proofs', () => {
  beforeEach(() => retired('key'));

  test('a proof moved to the account of another agent is broken', async () => {
    const bob = await service.agent();
    const body = await provenRegistration(service, bob, OTHER);
    await service.must('POST', '/register', { by: bob, body });
    await openChamber(service, [bob]);
    const theirs = altered(await accountOf(service, bob), PROOF, {
      walletAddress: WALLET.address,
      walletProof: proofIn(PROOF),
    });
    const found = await registration({ moves: parse(await service.lines(2)), account: theirs });
    expect(found).toMatchObject({ broken: ['registration'] });
  });

  test('a missing proof is broken if the join says that the wallet was proven', async () => {
    const forged = altered(moves, 2, { accountEventId: 1 });
    const { sentence } = await registration({ moves: forged, account: account.slice(0, 1) });
    expect(sentence).toContain('although event 1 had already named event 2');
    const later = altered(altered(altered(moves, 1, { accountEventId: 1 }), 2, { accountEventId: 1 }), PROPOSAL, {
      accountEventId: 1,
    });
    expect((await registration({ moves: later, account: account.slice(0, 1) })).sentence).toMatch(
      /event 2: wallet(Address|Proven) is /,
    );
  });
});

test('a proof for an origin other than that of its request is undecided until the caller names both', async () => {
  service = new TestService({ settings: { PUBLIC_URL: `${PUBLIC_URL},https://other.test` } });
  ann = await service.agent({ walletAddress: WALLET.address });
  const issuedAt = new Date(service.clock.read()).toISOString();
  const body = {
    ...(await provenRegistration(service, ann, WALLET)),
    ...(await proofBy(WALLET, ann.did, { issuedAt, service: 'https://other.test' })),
  };
  await service.must('POST', '/register', { by: ann, body });
  await openChamber(service, [ann]);
  const lines = parse(await service.lines(1));
  account = await accountOf(service, ann);
  expect(await registration({ moves: lines })).toMatchObject({
    verdict: 'undecided',
    note: expect.stringContaining('--origin'),
  });
  const both = [PUBLIC_URL, 'https://other.test'];
  expect(await registration({ moves: lines, origins: both })).toMatchObject({ verdict: 'verified' });
  expect(await registration({ moves: lines, origins: [PUBLIC_URL] })).toMatchObject({ broken: ['registration'] });
});

test('a proof for the whole address of the service is verified, and so is a proof for its origin', async () => {
  for (const name of [`${PUBLIC_URL}/api`, PUBLIC_URL]) {
    service = new TestService({ settings: { PUBLIC_URL: `${PUBLIC_URL}/api` } });
    ann = await service.agent({ walletAddress: WALLET.address });
    const issuedAt = new Date(service.clock.read()).toISOString();
    const registered = await provenRegistration(service, ann, WALLET);
    const body = { ...registered, ...(await proofBy(WALLET, ann.did, { issuedAt, service: name })) };
    await service.must('POST', '/register', { by: ann, body });
    await openChamber(service, [ann]);
    account = await accountOf(service, ann);
    expect(proofIn(PROOF)['service']).toBe(name);
    expect(await registration({ moves: parse(await service.lines(1)) })).toMatchObject({ verdict: 'verified' });
  }
});

test('a claim that a wallet was proven is broken if no given line proves it', async () => {
  const bob = await service.agent({ walletAddress: WALLET.address });
  await service.must('PUT', '/personality', { by: bob, body: { patch: { style: 'dry' } } });
  await openChamber(service, [bob]);
  const lines = parse(await service.lines(2));
  const [, personality = {}] = await accountOf(service, bob);
  const given = async (walletProven: boolean) => {
    const claimed = toText(rechained(altered(lines, 2, { walletProven })));
    return (await audit(claimed, { accounts: `${canonicalJson(personality)}\n` })).check('registration');
  };
  expect(await given(false)).toMatchObject({ verdict: 'not evaluated', findings: [] });
  expect(await given(true)).toMatchObject({
    verdict: 'broken',
    findings: [{ eventIds: [2], sentence: expect.stringContaining('walletProven is true, but no line up to event 2') }],
  });
});

describe('unsigned account changes', () => {
  const changed = (payload: Line, type = 'agent.personality_changed') => {
    const [registered = {}] = account;
    return [
      ...account.slice(0, PROOF),
      { ...registered, type, payload, request: null, ts: moves.at(-1)?.['ts'] },
    ] as Line[];
  };

  test('with --allow-unsigned, unsigned account changes are checked against their payloads and counted', async () => {
    account = await accountOf(service, ann);
    const allowed = async (lines: Line[]) => {
      const { check } = await audit(toText(rechained(moves)), {
        accounts: toText(rechained(lines)),
        allowUnsigned: true,
      });
      const { verdict, note, findings } = check('registration');
      return { verdict, note, sentence: findings[0]?.sentence };
    };
    const personality = payloadOf(account, PROOF)['personality'] as Line;
    const patch = { style: 'dry' };
    expect(await allowed(changed({ patch, personality: { ...personality, ...patch } }))).toMatchObject({
      verdict: 'verified',
      note: 'no signature covers 1 of the account lines',
    });
    const other = await allowed(changed({ patch, personality: { style: 'loud' } }));
    expect(other).toMatchObject({ verdict: 'broken', sentence: expect.stringContaining('does not match its request') });
    expect(await allowed(changed({ by: 'key' }, 'agent.retired'))).toMatchObject({
      note: 'no signature covers 1 of the account lines',
    });
  });
});

describe('a contract’s proof before an unsigned registration', () => {
  const BLOCK = { chainId: 31_337, blockNumber: 41, blockHash: `0x${'c3'.repeat(32)}` };

  /** ANN's account ends with a registration of the same wallet, whose request held an e-mail address; a contract made the proof. */
  async function auditedWith(outcome: string | { readonly doubt: string } | undefined): Promise<CheckResult> {
    account = await accountOf(service, ann);
    const { service: name, issuedAt = '' } = proofIn(PROOF) as { service: string; issuedAt: string };
    const signature = `0x${'c0'.repeat(65)}`;
    const { walletProof: _, ...content } = payloadOf(account, PROOF);
    const { agentId: __, ...body } = content;
    const at = Date.parse(String(account[PROOF - 1]?.['ts']));
    const forged = signedAccountLine({
      ...{ by: ann, at, type: 'agent.registered', path: '/register' },
      body: { ...body, walletSignature: signature, issuedAt },
      payload: { ...content, walletProof: { signature, issuedAt, service: name, ...BLOCK } },
    });
    const again = { ...forged, request: null, payload: content };
    const named = moves.map((move) => ({ ...move, payload: { ...(move['payload'] as Line), accountEventId: 3 } }));
    const chamberAudit = await auditLines(toText(rechained(named)), {});
    const text = toText(rechained([account[0] as Line, forged, again]));
    const accounts = await accountsOf(text, chamberAudit.context);
    await compareAccounts(chamberAudit, accounts, async () => outcome);
    return chamberAudit.findings.results().find(({ name }) => name === 'registration') as CheckResult;
  }

  test('the chain decides the proof of a contract, even if an unsigned registration follows', async () => {
    expect(await auditedWith('the contract does not accept the recorded signature')).toMatchObject({
      verdict: 'broken',
    });
    expect(await auditedWith({ doubt: 'the RPC serves another chain' })).toMatchObject({ verdict: 'undecided' });
    expect(await auditedWith(undefined)).toMatchObject({ verdict: 'not evaluated', counts: { broken: 0 } });
  });
});

describe('broken retirements', () => {
  test.each([1, PROPOSAL])('a retirement is broken if a move names it: event %i', async (eventId) => {
    await retired('key');
    const { broken, sentence } = await registration({ moves: altered(moves, eventId, { accountEventId: RETIREMENT }) });
    expect(broken).toContain('registration');
    expect(sentence).toMatch(/although event|which retired the key/);
  });
});

import { type Hex, parseTransaction } from 'viem';
import { describe, expect, test } from 'vitest';
import { auditContext } from '../../src/audit/context.ts';
import type { AuditPolicy } from '../../src/audit/policy.ts';
import { toDid } from '../../src/crypto/did-key.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { HOUR, START } from '../kit/clock.ts';
import { PUBLIC_URL } from '../kit/test-service.ts';
import { audit, auditLines, type Line, parse, rechained, signedLine, toText } from './forge.ts';
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
import { ALLOCATIONS, CAT, FACTORY, REGISTRY, signed } from './sample.ts';

function raise(): never {
  throw new Error('no such forgery');
}

async function auditWith(eventId: number, line: Line, policy: AuditPolicy = {}) {
  return await audit(withLine(eventId, line), policy);
}

test('an export without its service events is verified', async () => {
  expect((await audit(toText(rechained(moves)))).broken).toEqual([]);
});

test('an export of an earlier release, whose moves name no account line, is verified', async () => {
  const older = moves.map(({ payload, ...record }) => {
    const { accountEventId: _, walletAddress: __, walletProven: ___, ...rest } = payload as Line;
    return { ...record, payload: rest };
  });
  expect(toText(rechained(older))).not.toMatch(/accountEventId|walletAddress/);
  expect((await audit(toText(rechained(older)))).broken).toEqual([]);
});

describe('a well-signed move that breaks a rule', () => {
  test.each(ILLEGAL)('$title is named, and nothing else', async ({ eventId, code, ...move }) => {
    const { broken, named, findings } = await auditWith(eventId, signedLine(move));
    expect(broken).toEqual(['rules']);
    expect(findings('rules')[0]?.sentence).toContain(`FORUM_ERR_${code}`);
    expect([...named]).toEqual([eventId]);
  });

  test('a late reveal is not said to be in the phase that it was expected in', async () => {
    const { code: _, title: __, eventId, ...late } = ILLEGAL.find(({ title }) => title === 'a late reveal') ?? raise();
    const [{ sentence = '' } = {}] = (await auditWith(eventId, signedLine(late))).findings('rules');
    expect(sentence).toContain(
      'FORUM_ERR_PHASE: expected phase ALLOCATE_REVEAL before 2030-01-01T05:00:00.000Z, actual phase ALLOCATE_REVEAL after its end: the chamber is being committed',
    );
  });

  test('a reveal that was allowed is verified', async () => {
    const line = signedLine({
      by: CAT,
      type: 'allocation.revealed',
      path: 'allocate/reveal',
      at: START + 4.5 * HOUR,
      ...revealOf(ALLOCATIONS.cat),
    });
    expect((await auditWith(17, line)).broken).toEqual([]);
  });
});

describe('a move with wrong evidence', () => {
  test('is a good one before', async () => {
    expect((await auditWith(AFTER_HONEST, line)).broken).toEqual([]);
  });

  test.each(WRONG_EVIDENCE)('%s is named', async (_title, forged, checks) => {
    const { broken, named } = await auditWith(AFTER_HONEST, forged);
    expect([...broken].sort()).toEqual([...checks].sort());
    expect([...named]).toEqual([AFTER_HONEST]);
  });

  test('a signature that is used again is named with its first use', async () => {
    const { broken, findings } = await audit(toText(rechained(moves.toSpliced(AFTER_HONEST - 1, 0, line, line))));
    expect(broken).toEqual(['once']);
    expect(findings('once')[0]?.eventIds).toEqual([AFTER_HONEST, AFTER_HONEST + 1]);
  });

  test('a key of small order is rejected for every message', async () => {
    const did = toDid(Uint8Array.of(1, ...new Array(31).fill(0)));
    const forged = { ...line, did, request: JSON.parse(JSON.stringify(request).replaceAll(CAT.did, did)) as Line };
    const { findings } = await auditWith(AFTER_HONEST, forged);
    expect(findings('signature')[0]?.sentence).toContain('the public key is a point of small order');
  });

  const at = (seconds: number) => ({ ...line, ts: new Date(honest.at + seconds * 1_000).toISOString() });
  const expiring = { ...line, request: requestOf(signedLine({ ...honest, expires: 100 })) };
  const age = async (forged: Line, policy: AuditPolicy = {}) => {
    const { check, named } = await auditWith(AFTER_HONEST, forged, policy);
    return [check('age').verdict, [...named]];
  };

  test.each<readonly [string, Line]>([
    [
      'signed more than ten minutes after its event',
      { ...line, request: requestOf(signedLine({ ...honest, at: honest.at + 601e3 })) },
    ],
    [
      'signed an hour after its event',
      { ...line, request: requestOf(signedLine({ ...honest, at: honest.at + 3.6e6 })) },
    ],
    [
      'signed more than a day before its event',
      { ...line, request: requestOf(signedLine({ ...honest, at: honest.at - 86_401e3 })) },
    ],
    ['that had expired', { ...expiring, ts: at(100).ts as string }],
  ])('a signature %s is named', async (_title, forged) => {
    expect(await age(forged)).toEqual(['broken', [AFTER_HONEST]]);
  });

  test('a signature that has not expired yet is verified', async () => {
    expect(await age({ ...expiring, ts: at(99).ts as string })).toEqual(['verified', []]);
  });

  test('a signature between the defaults and the caps is undecided until the limits are given', async () => {
    expect(await age(at(720))).toEqual(['undecided', []]);
    expect(await age(at(720), { maxAgeSeconds: 720 })).toEqual(['verified', []]);
    expect(await age(at(720), { maxAgeSeconds: 719 })).toEqual(['broken', [AFTER_HONEST]]);
    const ahead = { ...line, request: requestOf(signedLine({ ...honest, at: honest.at + 600e3 })) };
    expect(await age(ahead)).toEqual(['undecided', []]);
    expect(await age(ahead, { maxSkewSeconds: 600 })).toEqual(['verified', []]);
    expect(await age(ahead, { maxSkewSeconds: 599 })).toEqual(['broken', [AFTER_HONEST]]);
  });

  test('a request for another address is undecided until the addresses are named', async () => {
    const elsewhere = signedLine({ ...honest, origin: 'https://other.test/api' });
    const origins = [PUBLIC_URL, 'https://other.test/api'];
    expect((await auditWith(AFTER_HONEST, elsewhere)).check('origin').verdict).toBe('undecided');
    expect((await auditWith(AFTER_HONEST, elsewhere, { origins })).check('origin').verdict).toBe('verified');
    const { broken, named } = await auditWith(AFTER_HONEST, elsewhere, { origins: [PUBLIC_URL] });
    expect([broken, [...named]]).toEqual([['origin'], [AFTER_HONEST]]);
  });
});

const isOf =
  (type: string) =>
  ({ type: its }: Line) =>
    its === type;

describe('a transaction to another contract', () => {
  const withTarget = async (eventId: number, to: Hex = DEAD, chainId = 31_337) => {
    const { payload } = records[eventId - 1] as unknown as { payload: RelayTransaction };
    const { data = '0x', nonce = 0, maxFeePerGas = 0n } = parseTransaction(payload.rawTransaction);
    const forged = await signed(to, data, { nonce, fee: maxFeePerGas, chainId });
    return records.map((record, index) =>
      index === eventId - 1 ? { ...record, payload: { ...payloadOf(record), ...forged } as unknown as Line } : record,
    );
  };
  const DEAD = `0x${'00'.repeat(18)}dEaD` as const;
  const FIRST_COMMIT = records.findIndex(isOf('relay.commit_submitted')) + 1;
  const DEPLOY = records.findIndex(isOf('relay.deploy_submitted')) + 1;

  test('of another chain is broken', async () => {
    const { broken, findings } = await audit(toText(rechained(await withTarget(DEPLOY, FACTORY, 1))));
    expect(broken).toEqual(['transactions']);
    expect(findings('transactions')[0]?.sentence).toContain('is for chain 1, although the log began on chain 31337');
  });

  test.each<[string, string, bigint | undefined, string]>([
    ['more data than its call', '00', undefined, 'is not a signed call of the contracts'],
    ['a payment', '', 1n, 'sends 1 wei, which the contract refuses'],
  ])('with %s is broken', async (_what, more, value, sentence) => {
    const { payload } = records[DEPLOY - 1] as unknown as { payload: RelayTransaction };
    const { data, maxFeePerGas: fee = 0n } = parseTransaction(payload.rawTransaction);
    const forged = await signed(FACTORY, `${data ?? '0x'}${more}`, {
      nonce: payload.nonce,
      fee,
      ...(value && { value }),
    });
    const { broken, findings } = await audit(altered(DEPLOY, { ...forged }));
    expect(broken).toEqual(['transactions']);
    expect(findings('transactions')[0]?.sentence).toContain(sentence);
  });

  test('is undecided together with one to the registry, and broken once the registry is named', async () => {
    const text = toText(rechained(await withTarget(FIRST_COMMIT)));
    const { broken, check } = await audit(text);
    expect([broken, check('transactions').verdict]).toEqual([[], 'undecided']);
    expect(check('transactions').note).toContain('--registry');
    const decided = await audit(text, { registries: [REGISTRY] });
    expect([decided.broken, [...decided.named]]).toEqual([['transactions'], [FIRST_COMMIT]]);
  });

  test('is named where it is the only one, and broken once the factory is named', async () => {
    const honestNote = (await audit(text)).check('transactions').note;
    expect(honestNote).toContain(`registry ${REGISTRY.toLowerCase()}, factory ${FACTORY.toLowerCase()}`);
    const records = await withTarget(DEPLOY);
    const { payload } = records[DEPLOY - 1] as unknown as { payload: RelayTransaction };
    const outcome = records.findIndex(isOf('idea.deployed'));
    records[outcome] = {
      ...records[outcome],
      payload: { ...payloadOf(records[outcome] as Line), txHash: payload.txHash },
    };
    const forged = toText(rechained(records));
    expect((await audit(forged)).check('transactions').note).toContain(`factory ${DEAD.toLowerCase()}`);
    const { broken, named } = await audit(forged, { factories: [FACTORY] });
    expect([broken, [...named]]).toEqual([['transactions'], [DEPLOY]]);
  });
});

describe('an altered chamber', () => {
  test.each(ALTERED)('%s is named', async (_title, eventId, payload, check) => {
    const { broken, named } = await audit(altered(eventId, payload));
    expect(broken).toContain(check);
    expect(named).toContain(eventId);
  });

  test('a pass left out by a service that rewrites its log shows in the root that it committed', async () => {
    const { broken, findings } = await audit(toText(rechained(records.toSpliced(5, 1))));
    expect(broken).toContain('root');
    expect(findings('root')[0]?.sentence).toContain('event 18 commits');
  });

  test('the same token for two ideas is named', async () => {
    const [deployed, failed] = [records[20] as Line, records[21] as Line];
    const payload = { ...payloadOf(deployed), ideaId: 'idea-2' };
    const second = { ...failed, type: 'idea.deployed', payload };
    const { findings } = await audit(toText(rechained([...records.slice(0, -1), second])));
    expect(findings('service-events')[0]?.sentence).toContain('as the token of idea-2, which is that of idea-1');
  });

  test('the same token, and the request that created it, in another chamber of the log are named', async () => {
    const context = auditContext({}, () => true);
    await auditLines(text, {}, { context });
    const other = toText(rechained(records.map((record) => ({ ...record, chamberId: 2 }))));
    const { findings } = await auditLines(other, {}, { context });
    const sentences = findings.results().flatMap(({ findings }) => findings.map(({ sentence }) => sentence));
    expect(sentences).toContainEqual(
      expect.stringMatching(/as the token of idea-1, which is that of idea-1 of chamber 1$/),
    );
    expect(sentences).toContain('event 1 reuses the signature that created chamber 1');
  });

  test('an outcome by the transaction of another is named, although its own is not logged', async () => {
    const { txHash = null } = payloadOf(records[17] as Line);
    for (const [left, id] of [
      [20, 20],
      [20, 21],
    ] as const) {
      const lines = parse(
        altered(id + 1, { txHash })
          .trimEnd()
          .split('\n'),
      ).toSpliced(left - 1, 1);
      const { broken, findings } = await audit(toText(rechained(lines)));
      expect(broken).toEqual(['transactions']);
      expect(findings('transactions')[0]?.sentence).toMatch(/, which is for the commitment of chamber 1$/);
    }
  });

  test('an outcome by another transaction than those logged is for the chain to decide', async () => {
    const { broken, check } = await audit(altered(19, { txHash: `0x${'12'.repeat(32)}` }));
    expect([broken, check('transactions').verdict]).toEqual([[], 'undecided']);
    expect(check('transactions').note).toContain('is not in the log: say with --rpc');
  });

  test.each([
    ['the commitment’s transactions', (type: string) => type === 'relay.commit_submitted'],
    ['all transactions', (type: string) => type.startsWith('relay.')],
  ])('a move left out with %s, and root and count set right, is for the chain to decide', async (_what, isLeftOut) => {
    const kept = records.toSpliced(AFTER_HONEST - 2, 1).filter(({ type }) => !isLeftOut(String(type)));
    const tree = await auditLines(toText(rechained(kept.slice(0, MOVES - 1))), {});
    const commitment = { merkleRoot: tree.moves.root(), eventCount: MOVES - 1 };
    const forged = kept.map((record) =>
      isOf('chamber.committed')(record) ? { ...record, payload: { ...payloadOf(record), ...commitment } } : record,
    );
    const { broken, check } = await audit(toText(rechained(forged as Line[])));
    expect([broken, check('transactions').verdict]).toEqual([[], 'undecided']);
    expect(check('transactions').note).toContain('is not in the log: say with --rpc');
  });

  test('a transaction dated before the end of the reveals is named', async () => {
    const early = new Date(START + 4.9 * HOUR).toISOString();
    const forged = records.with(MOVES, { ...(records[MOVES] as Line), ts: early });
    const { broken, named, findings } = await audit(toText(rechained(forged)));
    expect([broken, [...named]]).toEqual([['service-events'], [MOVES + 1]]);
    expect(findings('service-events')[0]?.sentence).toContain('comes before the reveal deadline');
  });

  test.each([
    ['more than 15 s before the end of the reveals is undecided', '2030-01-01T04:59:44.000Z', 'undecided'],
    ['15 s before the end of the reveals is verified', '2030-01-01T04:59:45.000Z', 'verified'],
  ])('a block %s', async (_what, committedAt, verdict) => {
    const { broken, check } = await audit(altered(19, { committedAt }));
    expect([broken, check('service-events').verdict]).toEqual([[], verdict]);
    if (verdict === 'undecided') expect(check('service-events').note).toContain('say with --rpc');
  });

  const ofType = (type: string) => records.find(({ type: its }) => its === type) as Line;
  const SENDINGS = [
    ['relay.commit_submitted', 'comes after the commitment'],
    ['relay.deploy_submitted', 'comes after the outcome of idea-1'],
  ] as const;
  const atTheEnd = (type: string) => {
    const { ts = null } = records.at(-1) ?? {};
    return { ...ofType(type), ts };
  };

  test.each(SENDINGS)('%s after the outcome is what a reorganisation makes of it', async (type) => {
    const { broken } = await audit(toText(rechained([...records, atTheEnd(type)])));
    expect(broken).toEqual([]);
  });

  test.each(SENDINGS)('%s after the outcome is named where nothing had been sent before it', async (type, sentence) => {
    const unsent = records.filter(({ type: its }) => its !== type);
    const { broken, findings } = await audit(toText(rechained([...unsent, atTheEnd(type)])));
    expect(broken).toEqual(['service-events']);
    expect(findings('service-events')[0]?.sentence).toContain(sentence);
  });

  test('any of very many transactions may be the one that succeeded, and few of them are kept', async () => {
    const committed = records.indexOf(ofType('chamber.committed'));
    const { ts = null } = records[committed - 1] ?? {};
    const more = new Array<Line>(300).fill({ ...ofType('relay.commit_submitted'), ts });
    const text = toText(rechained(records.toSpliced(committed, 0, ...more)));
    expect((await audit(text)).broken).toEqual([]);
    const { decisions } = await auditLines(text, {});
    expect(decisions.state?.settlement.commitSubmitted.length).toBeLessThan(3);
  });

  test('a service event in the midst of the moves is named', async () => {
    const { broken, named } = await auditWith(10, {
      ...(records[18] as Line),
      ts: new Date(START + 2 * HOUR + 500).toISOString(),
    });
    expect(broken).toContain('service-events');
    expect(named).toContain(10);
  });
});

import { type Hex, parseTransaction } from 'viem';
import { describe, expect, test } from 'vitest';
import { auditContext } from '../../src/audit/context.ts';
import type { AuditPolicy } from '../../src/audit/policy.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { PUBLIC_URL } from '../kit/test-service.ts';
import { audit, auditLines, type Line, parse, rechained, signedLine, toText } from './forge.ts';
import { AFTER_HONEST, altered, honest, line, payloadOf, records, requestOf, text, withLine } from './forgeries.ts';
import { FACTORY, REGISTRY, signed } from './sample.ts';

async function auditWith(eventId: number, line: Line, policy: AuditPolicy = {}) {
  return await audit(withLine(eventId, line), policy);
}

describe('a move with wrong evidence', () => {
  const at = (seconds: number) => ({ ...line, ts: new Date(honest.at + seconds * 1_000).toISOString() });
  const expiring = { ...line, request: requestOf(signedLine({ ...honest, expires: 100 })) };
  const age = async (forged: Line, policy: AuditPolicy = {}) => {
    const { check, named } = await auditWith(AFTER_HONEST, forged, policy);
    return [check('age').verdict, [...named]];
  };

  test('a signature before its expiry is verified', async () => {
    expect(await age({ ...expiring, ts: at(99).ts as string })).toEqual(['verified', []]);
  });

  test('a signature age between the default and the maximum limit is undecided until the caller sets the limit', async () => {
    expect(await age(at(720))).toEqual(['undecided', []]);
    expect(await age(at(720), { maxAgeSeconds: 720 })).toEqual(['verified', []]);
    expect(await age(at(720), { maxAgeSeconds: 719 })).toEqual(['broken', [AFTER_HONEST]]);
    const ahead = { ...line, request: requestOf(signedLine({ ...honest, at: honest.at + 600e3 })) };
    expect(await age(ahead)).toEqual(['undecided', []]);
    expect(await age(ahead, { maxSkewSeconds: 600 })).toEqual(['verified', []]);
    expect(await age(ahead, { maxSkewSeconds: 599 })).toEqual(['broken', [AFTER_HONEST]]);
  });

  test('a request to a different address is undecided until the caller names the service’s addresses', async () => {
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

describe('a transaction to a different contract', () => {
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

  test('a transaction to a different contract is undecided if another goes to the registry, and broken with --registry', async () => {
    const text = toText(rechained(await withTarget(FIRST_COMMIT)));
    const { broken, check } = await audit(text);
    expect([broken, check('transactions').verdict]).toEqual([[], 'undecided']);
    expect(check('transactions').note).toContain('--registry');
    const decided = await audit(text, { registries: [REGISTRY] });
    expect([decided.broken, [...decided.named]]).toEqual([['transactions'], [FIRST_COMMIT]]);
  });

  test('a transaction to a different contract is noted if it is the only one, and broken with --factory', async () => {
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
  test('a token and a creation request reused in a second chamber of the log are reported', async () => {
    const context = auditContext({}, () => true);
    await auditLines(text, {}, { context });
    const other = toText(rechained(records.map((record) => ({ ...record, chamberId: 2 }))));
    const { findings } = await auditLines(other, {}, { context });
    const sentences = findings.results().flatMap(({ findings }) => findings.map(({ sentence }) => sentence));
    expect(sentences).toContainEqual(
      expect.stringMatching(/as the token of idea-1, which is the token of idea-1 of chamber 1$/),
    );
    expect(sentences).toContain('event 1 reuses the signature that created chamber 1');
  });

  test('an outcome that names a different idea’s transaction is reported, even if its own is not logged', async () => {
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

  const ofType = (type: string) => records.find(({ type: its }) => its === type) as Line;
  const SENDINGS = [
    ['relay.commit_submitted', 'comes after the commitment'],
    ['relay.deploy_submitted', 'comes after the outcome of idea-1'],
  ] as const;
  const atTheEnd = (type: string) => {
    const { ts = null } = records.at(-1) ?? {};
    return { ...ofType(type), ts };
  };

  test.each(SENDINGS)('%s after the outcome may follow a reorganization', async (type) => {
    const { broken } = await audit(toText(rechained([...records, atTheEnd(type)])));
    expect(broken).toEqual([]);
  });

  test.each(SENDINGS)('%s after the outcome is reported if none was sent before it', async (type, sentence) => {
    const unsent = records.filter(({ type: its }) => its !== type);
    const { broken, findings } = await audit(toText(rechained([...unsent, atTheEnd(type)])));
    expect(broken).toEqual(['service-events']);
    expect(findings('service-events')[0]?.sentence).toContain(sentence);
  });

  test('any of many transactions may be the successful one, and the auditor keeps few of them', async () => {
    const committed = records.indexOf(ofType('chamber.committed'));
    const { ts = null } = records[committed - 1] ?? {};
    const more = new Array<Line>(300).fill({ ...ofType('relay.commit_submitted'), ts });
    const text = toText(rechained(records.toSpliced(committed, 0, ...more)));
    expect((await audit(text)).broken).toEqual([]);
    const { decisions } = await auditLines(text, {});
    expect(decisions.state?.settlement.commitSubmitted.length).toBeLessThan(3);
  });
});

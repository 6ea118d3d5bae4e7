// Lines that a dishonest service might write itself: numbers and hashes are right throughout, so only evidence and rules tell.
import { readFileSync } from 'node:fs';
import { parseTransaction } from 'viem';
import { describe, expect, test } from 'vitest';
import type { AuditPolicy } from '../../src/audit/context.ts';
import { toDid } from '../../src/crypto/did-key.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { HOUR, START } from '../kit/clock.ts';
import { PUBLIC_URL } from '../kit/house.ts';
import { Signer } from '../kit/signer.ts';
import { audit, type ForgedMove, type Line, parse, rechained, signedLine, toText } from './forge.ts';
import { ALLOCATIONS, ANN, BOB, CAT, FACTORY, REGISTRY, signed } from './sample.ts';

const text = readFileSync(new URL('../../fixtures/logs/chamber.ndjson', import.meta.url), 'utf8');
const records = parse(text.trimEnd().split('\n'));
const MOVES = 16;
const moves = records.slice(0, MOVES);
const EVE = new Signer(Buffer.alloc(32, 4));

/** The export's moves alone, with a line put in as event `eventId`. */
async function auditWith(eventId: number, line: Line, policy: AuditPolicy = {}) {
  return await audit(toText(rechained(moves.toSpliced(eventId - 1, 0, line))), policy);
}

test('an export without its service events is verified', async () => {
  expect((await audit(toText(rechained(moves)))).broken).toEqual([]);
});

test('an export of an earlier release, whose moves name no account line, is verified', async () => {
  const older = moves.map(({ payload, ...record }) => {
    const { accountEventId: _, ...rest } = payload as Line;
    return { ...record, payload: rest };
  });
  expect(toText(rechained(older))).not.toContain('accountEventId');
  expect((await audit(toText(rechained(older)))).broken).toEqual([]);
});

const debate = (comment: string) => ({
  body: { comment },
  payload: { comment, ideaId: null, refinement: null },
});
const revealOf = ({ reveal }: typeof ALLOCATIONS.cat) =>
  ({ body: reveal, payload: reveal }) as unknown as Pick<ForgedMove, 'body' | 'payload'>;
const wall = { name: 'W', ticker: 'WALL2', description: '' };
const proposal = { body: wall, payload: { ...wall, ideaId: 'idea-4', slot: 4, creatorWallet: `0x${'11'.repeat(20)}` } };
const other = { allocations: [{ ideaId: 'idea-3', bps: 9_999 }], salt: ALLOCATIONS.cat.reveal.salt };

interface Illegal extends Omit<ForgedMove, 'path'> {
  readonly title: string;
  readonly eventId: number;
  readonly path: string;
  readonly code: string;
}

const ILLEGAL: readonly Illegal[] = [
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
    payload: { turnOrder: 3 },
    code: 'PHASE',
  },
  {
    title: 'a member who joins twice',
    eventId: 5,
    by: BOB,
    type: 'chamber.joined',
    path: 'join',
    at: START + 60_000,
    payload: { turnOrder: 3 },
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

describe('a well-signed move that breaks a rule', () => {
  test.each(ILLEGAL)('$title is named, and nothing else', async ({ eventId, code, ...move }) => {
    const { broken, named, findings } = await auditWith(eventId, signedLine(move));
    expect(broken).toEqual(['rules']);
    expect(findings('rules')[0]?.sentence).toContain(`FORUM_ERR_${code}`);
    expect([...named]).toEqual([eventId]);
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

const honest = {
  by: CAT,
  type: 'chamber.debated',
  path: 'debate',
  at: START + 2.7 * HOUR,
  ...debate('Still no walls.'),
};
const AFTER_HONEST = 12;

const requestOf = ({ request }: Line) => request as Line;
const payloadOf = ({ payload }: Line) => payload as Line;

describe('a move with wrong evidence', () => {
  const line = signedLine(honest);
  const request = requestOf(line);
  const signedBy = (signer: Signer) => requestOf(signedLine({ ...honest, by: signer }));

  test('is a good one before', async () => {
    expect((await auditWith(AFTER_HONEST, line)).broken).toEqual([]);
  });

  test.each<[string, Line, readonly string[]]>([
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
  ])('%s is named', async (_title, forged, checks) => {
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

describe('a transaction to another contract', () => {
  const isOf =
    (type: string) =>
    ({ type: its }: Line) =>
      its === type;
  const withTarget = async (eventId: number) => {
    const { payload } = records[eventId - 1] as unknown as { payload: RelayTransaction };
    const { data = '0x', nonce = 0, maxFeePerGas = 0n } = parseTransaction(payload.rawTransaction);
    const forged = await signed(DEAD, data, { nonce, fee: maxFeePerGas });
    return records.map((record, index) =>
      index === eventId - 1 ? { ...record, payload: { ...payloadOf(record), ...forged } as unknown as Line } : record,
    );
  };
  const DEAD = `0x${'00'.repeat(18)}dEaD` as const;
  const FIRST_COMMIT = records.findIndex(isOf('relay.commit_submitted')) + 1;
  const DEPLOY = records.findIndex(isOf('relay.deploy_submitted')) + 1;

  test('is undecided beside one to the registry, and broken once the registry is named', async () => {
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
  const alter = (eventId: number, payload: Line) =>
    audit(
      toText(
        rechained(
          records.map((record, index) =>
            index === eventId - 1 ? { ...record, payload: { ...payloadOf(record), ...payload } } : record,
          ),
        ),
      ),
    );

  test.each<[string, number, Line, string]>([
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
  ])('%s is named', async (_title, eventId, payload, check) => {
    const { broken, named } = await alter(eventId, payload);
    expect(broken).toContain(check);
    expect(named).toContain(eventId);
  });

  test('a pass left out by a service that rewrites its log shows in the root that it committed', async () => {
    const { broken, findings } = await audit(toText(rechained(records.toSpliced(5, 1))));
    expect(broken).toContain('root');
    expect(findings('root')[0]?.sentence).toContain('event 18 commits');
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

  test('a service event in the midst of the moves is named', async () => {
    const { broken, named } = await auditWith(10, {
      ...(records[18] as Line),
      ts: new Date(START + 2 * HOUR + 500).toISOString(),
    });
    expect(broken).toContain('service-events');
    expect(named).toContain(10);
  });
});

// One row for each rule about a member of a body: accepted values, and rejected values whose error names the member.
import { describe, expect, it } from 'vitest';
import timestamps from '../../fixtures/vectors/timestamps.json' with { type: 'json' };
import { changePersonality } from '../../src/moves/change-personality.ts';
import { type Move, parseBody } from '../../src/moves/move.ts';
import { register } from '../../src/moves/register.ts';
import { moves } from '../../src/moves/registry.ts';
import { ALICE, BOB, SAMPLE_PUBKEY } from '../../src/moves/samples.ts';
import { DEADLINES, type JsonValue } from '../../src/vocabulary/values.ts';
import { DEADLINES_HOURLY } from '../kit/brief-events.ts';
import { outcomeOf } from '../kit/given.ts';

const CHECKSUMMED = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const TOKEN = { address: CHECKSUMMED, minBalance: '1', at: 'join' };
const HASH = `0x${'aB'.repeat(32)}`;

const SLICES = { register, changePersonality, ...moves };
type Operation = keyof typeof SLICES;

function bodyOf(operation: Operation, body: JsonValue | undefined): unknown {
  return parseBody(SLICES[operation] as Move, { json: body, text: JSON.stringify(body) ?? '' });
}

/** A valid body for each operation. */
const BODIES: Readonly<Record<Operation, Readonly<Record<string, unknown>>>> = {
  register: { pubkeyHex: SAMPLE_PUBKEY, walletAddress: CHECKSUMMED, operatorEmail: 'op@example.org', personality: {} },
  changePersonality: { patch: { loves: ['a'], hates: [], expertise: ['b'], style: '' } },
  createChamber: { name: 'Test', ...DEADLINES_HOURLY },
  join: {},
  admit: { did: ALICE },
  start: {},
  propose: { name: 'Idea', ticker: 'A-z_0.9', description: 'why' },
  debate: { comment: 'hm' },
  amend: { ideaId: 'idea-1', name: 'Idea', description: 'why' },
  withdraw: { ideaId: 'idea-1' },
  pass: {},
  commit: { commitment: HASH },
  reveal: { allocations: [{ ideaId: 'idea-1', bps: 10_000 }], salt: `0x${'00'.repeat(16)}` },
};

function parse(operation: Operation, changes: Readonly<Record<string, unknown>>): unknown {
  return outcomeOf(() => bodyOf(operation, JSON.parse(JSON.stringify({ ...BODIES[operation], ...changes }))));
}

function refusalOf(field: string) {
  const detail = expect.stringMatching(`^${field.replace(/[[\].]/g, '\\$&')}: `);
  return { code: 'FORUM_ERR_VALIDATION', detail };
}

/** The members that an error names, in order. */
function problemsOf(operation: Operation, body: JsonValue): string[] {
  const outcome = outcomeOf(() => bodyOf(operation, body)) as { readonly detail: string };
  return outcome.detail.split('; ').flatMap((problem) => /^(?!known)([\w.[\]]+): /.exec(problem)?.[1] ?? []);
}

function deep(levels: number): unknown {
  return levels === 0 ? 'leaf' : { deeper: deep(levels - 1) };
}

const tickers = (...texts: readonly string[]) => texts.map((text) => ['propose', 'ticker', text] as const);

describe('a field', () => {
  it.each([
    ['register', 'walletAddress', CHECKSUMMED.toLowerCase()],
    ['register', 'walletAddress', `0x${CHECKSUMMED.slice(2).toUpperCase()}`],
    ['register', 'operatorEmail', 'First.Last+tag@Example.ORG'],
    ['register', 'operatorEmail', 'a@xn--bcher-kva.example'],
    ['register', 'operatorEmail', 'a@example.xn--p1ai'],
    ['register', 'operatorEmail', 'a@my--host.example.org'],
    ['register', 'operatorEmail', "o'neil@example.org"],
    ['register', 'operatorEmail', 'a&b@example.org'],
    ['register', 'operatorEmail', 'a=b@example.org'],
    ['register', 'operatorEmail', 'user%x@example.org'],
    ['register', 'operatorEmail', `${'x'.repeat(242)}@example.org`],
    ['register', 'personality', { loves: ['a'], style: 's' }],
    ['register', 'personality', { hates: Array(64).fill('x'.repeat(256)), style: 'x'.repeat(2_048) }],
    ['createChamber', 'name', 'x'.repeat(120)],
    ['createChamber', 'minBackersForGraduation', 1],
    ['createChamber', 'turnSeconds', 1],
    ['createChamber', 'admission', {}],
    ['createChamber', 'admission', { dids: [] }],
    ['createChamber', 'admission', { dids: [ALICE, BOB] }],
    ['createChamber', 'admission', { dids: [], provenWallets: true, token: TOKEN }],
    ['createChamber', 'admission', { token: { ...TOKEN, at: 'creation', minBalance: `${2n ** 256n - 1n}` } }],
    ['propose', 'ticker', 'x'.repeat(32)],
    ['propose', 'ticker', '...'],
    ['propose', 'ticker', '.a'],
    ...tickers('idea-', 'idea-x', 'idea7', 'A', 'A1B', 'B1', 'systems', 'creators-1'),
    ['propose', 'description', ''],
    ['propose', 'description', 'x'.repeat(8_192)],
    ['debate', 'ideaId', null],
    ['debate', 'ideaId', 'idea-1'],
    ['debate', 'comment', 'x'.repeat(8_192)],
    ['debate', 'refinement', deep(16)],
    ['debate', 'replyTo', 1],
    ['debate', 'replyTo', null],
    ['debate', 'stance', null],
    ['amend', 'name', 'x'.repeat(120)],
    ['amend', 'description', ''],
    ['amend', 'description', 'x'.repeat(8_192)],
    ['createChamber', 'minMembers', 1],
    ['createChamber', 'minMembers', 256],
    ['reveal', 'allocations', []],
    [
      'reveal',
      'allocations',
      [
        { ideaId: 'idea-1', bps: 0 },
        { ideaId: 'idea-2', bps: 10_000 },
      ],
    ],
    ['reveal', 'salt', `0x${'aF'.repeat(64)}`],
  ] as const)('the body of %s: %s may be %j', (operation, field, value) => {
    expect(parse(operation, { [field]: value })).toMatchObject({ [field]: value });
  });

  it.each([
    ['register', 'pubkeyHex', HASH.slice(2)],
    ['register', 'pubkeyHex', HASH.slice(0, -2)],
    ['register', 'pubkeyHex', `${HASH}00`],
    ['register', 'pubkeyHex', 7],
    ['register', 'walletAddress', CHECKSUMMED.replace('0x5aA', '0x5AA')],
    ['register', 'walletAddress', CHECKSUMMED.slice(0, -1)],
    ['register', 'walletAddress', null],
    ['register', 'operatorEmail', 'nobody'],
    ['register', 'operatorEmail', ''],
    ['register', 'operatorEmail', 'a@localhost'],
    ['register', 'operatorEmail', 'a@127.0.0.1'],
    ['register', 'operatorEmail', 'a@-x.example.org'],
    ['register', 'operatorEmail', 'a@example..org'],
    ['register', 'operatorEmail', 'a@example.org.'],
    ['register', 'operatorEmail', '.a@example.org'],
    ['register', 'operatorEmail', 'a.@example.org'],
    ['register', 'operatorEmail', 'a..b@example.org'],
    ['register', 'operatorEmail', 'a b@example.org'],
    ['register', 'operatorEmail', 'a@b@example.org'],
    ['register', 'operatorEmail', 'a@example.org\n'],
    ['register', 'operatorEmail', '<a@example.org>'],
    ['register', 'operatorEmail', `${'x'.repeat(250)}@example.org`],
    ['register', 'personality', null],
    ['register', 'personality', []],
    ['createChamber', 'name', ''],
    ['createChamber', 'name', 'x'.repeat(121)],
    ['createChamber', 'name', '😀'.repeat(61)],
    ['createChamber', 'minBackersForGraduation', 0],
    ['createChamber', 'minBackersForGraduation', 1.5],
    ['createChamber', 'minBackersForGraduation', '1'],
    ['createChamber', 'minBackersForGraduation', null],
    ['createChamber', 'turnSeconds', 0],
    ['createChamber', 'turnSeconds', null],
    ['propose', 'name', ''],
    ['propose', 'ticker', ''],
    ['propose', 'ticker', 'x'.repeat(33)],
    ['propose', 'ticker', 'A B'],
    ['propose', 'ticker', '.'],
    ['propose', 'ticker', '..'],
    ...tickers('idea-7', 'IDEA-12', 'A1', 'a007', 'SYSTEM', 'system', 'Service', 'creator'),
    ['propose', 'name', 'two\nlines'],
    ['propose', 'name', 'a\u0000'],
    ['propose', 'name', 'a\u0085'],
    ['propose', 'ticker', 'ÄBC'],
    ['propose', 'ticker', 'ABC\n'],
    ['propose', 'description', null],
    ['propose', 'description', 'x'.repeat(8_193)],
    ['debate', 'ideaId', 1],
    ['debate', 'comment', ''],
    ['debate', 'comment', 'x'.repeat(8_193)],
    ['debate', 'refinement', null],
    ['debate', 'refinement', []],
    ['debate', 'refinement', deep(17)],
    ['debate', 'replyTo', 0],
    ['debate', 'replyTo', 1.5],
    ['debate', 'replyTo', '1'],
    ['debate', 'stance', 'For'],
    ['debate', 'stance', ''],
    ['debate', 'stance', 'for'],
    ['amend', 'ideaId', null],
    ['amend', 'name', ''],
    ['amend', 'name', null],
    ['amend', 'name', 'two\nlines'],
    ['amend', 'description', null],
    ['amend', 'description', 'x'.repeat(8_193)],
    ['withdraw', 'ideaId', 1],
    ['createChamber', 'minMembers', 0],
    ['createChamber', 'minMembers', 257],
    ['createChamber', 'minMembers', null],
    ['commit', 'commitment', HASH.slice(0, -1)],
    ['commit', 'commitment', `${HASH}0`],
    ['reveal', 'allocations', {}],
    [
      'reveal',
      'allocations',
      [
        { ideaId: 'a', bps: 1 },
        { ideaId: 'a', bps: 1 },
      ],
    ],
    [
      'reveal',
      'allocations',
      [
        { ideaId: 'a', bps: 5_000 },
        { ideaId: 'b', bps: 5_001 },
      ],
    ],
    ['reveal', 'salt', `0x${'00'.repeat(15)}`],
    ['reveal', 'salt', `0x${'00'.repeat(65)}`],
    ['reveal', 'salt', `0x${'00'.repeat(16)}0`],
  ] as const)('the body of %s: %s must not be %j', (operation, field, value) => {
    expect(parse(operation, { [field]: value })).toEqual(refusalOf(field));
  });

  it.each([
    ['register', { ...BODIES.register, personality: { expertise: Array(65).fill('x') } }, 'personality.expertise'],
    ['register', { ...BODIES.register, personality: { hates: ['x', ''] } }, 'personality.hates[1]'],
    ['changePersonality', { patch: { loves: Array(65).fill('x') } }, 'patch.loves'],
    ['changePersonality', { patch: { hates: ['x'.repeat(257)] } }, 'patch.hates[0]'],
    ['changePersonality', { patch: { expertise: [''] } }, 'patch.expertise[0]'],
    ['changePersonality', { patch: { style: 'x'.repeat(2_049) } }, 'patch.style'],
    ['changePersonality', { patch: { loves: 'a' } }, 'patch.loves'],
    ['changePersonality', { patch: { hates: [1] } }, 'patch.hates[0]'],
    ['changePersonality', { patch: { style: ['s'] } }, 'patch.style'],
    ['changePersonality', { patch: { style: null } }, 'patch.style'],
    ['createChamber', { admission: { dids: ALICE } }, 'admission.dids'],
    ['createChamber', { admission: { dids: ['did:key:z6Mk'] } }, 'admission.dids[0]'],
    ['createChamber', { admission: { dids: [ALICE, 7] } }, 'admission.dids[1]'],
    ['createChamber', { admission: { dids: [ALICE, `${BOB}#key`] } }, 'admission.dids[1]'],
    ['createChamber', { admission: { dids: [BOB, ALICE, BOB] } }, 'admission.dids[2]'],
    ['createChamber', { admission: { dids: Array(257).fill(ALICE) } }, 'admission.dids'],
    ['createChamber', { admission: { dids: null } }, 'admission.dids'],
    ['createChamber', { admission: { provenWallets: false } }, 'admission.provenWallets'],
    ['createChamber', { admission: { provenWallets: 1 } }, 'admission.provenWallets'],
    ['createChamber', { admission: { token: {} } }, 'admission.token.address'],
    ['createChamber', { admission: { token: { ...TOKEN, address: '0x12' } } }, 'admission.token.address'],
    ['createChamber', { admission: { token: { ...TOKEN, minBalance: 0 } } }, 'admission.token.minBalance'],
    ['createChamber', { admission: { token: { ...TOKEN, minBalance: -1 } } }, 'admission.token.minBalance'],
    ['createChamber', { admission: { token: { ...TOKEN, minBalance: '-1' } } }, 'admission.token.minBalance'],
    ['createChamber', { admission: { token: { ...TOKEN, minBalance: 1.5 } } }, 'admission.token.minBalance'],
    ['createChamber', { admission: { token: { ...TOKEN, minBalance: '1.5' } } }, 'admission.token.minBalance'],
    ['createChamber', { admission: { token: { ...TOKEN, minBalance: '0x5' } } }, 'admission.token.minBalance'],
    ['createChamber', { admission: { token: { ...TOKEN, minBalance: '05' } } }, 'admission.token.minBalance'],
    [
      'createChamber',
      { admission: { token: { ...TOKEN, minBalance: `${2n ** 256n}` } } },
      'admission.token.minBalance',
    ],
    ['createChamber', { admission: { token: { ...TOKEN, minBalance: null } } }, 'admission.token.minBalance'],
    ['createChamber', { admission: { token: { ...TOKEN, at: 'now' } } }, 'admission.token.at'],
    ['createChamber', { admission: { token: { ...TOKEN, chainId: 1 } } }, 'admission.token'],
    ['createChamber', { admission: { list: [] } }, 'admission'],
    ['createChamber', { admission: null }, 'admission'],
    ['createChamber', { admission: [] }, 'admission'],
    ['admit', { did: 'did:web:example.org' }, 'did'],
    ['reveal', { allocations: [{ ideaId: 'a', bps: -1 }] }, 'allocations[0].bps'],
    ['reveal', { allocations: [{ ideaId: 'a', bps: 10_001 }] }, 'allocations[0].bps'],
    ['reveal', { allocations: [{ ideaId: 'a', bps: 0.5 }] }, 'allocations[0].bps'],
    ['reveal', { allocations: [{ ideaId: 'a' }] }, 'allocations[0].bps'],
    ['reveal', { allocations: [{ ideaId: 5, bps: 1 }] }, 'allocations[0].ideaId'],
  ] as const)('the error for the body of %s with %j names the path', (operation, changes, path) => {
    expect(parse(operation, changes)).toEqual(refusalOf(path));
  });

  const required = Object.entries(BODIES).flatMap(([operation, body]) =>
    Object.keys(body)
      .filter((field) => field !== 'description' && field !== 'operatorEmail')
      .filter((field) => operation !== 'amend' || field === 'ideaId')
      .map((field) => [operation as Operation, field] as const),
  );

  it.each(required)('the body of %s: %s is required', (operation, field) => {
    const refusal = { code: 'FORUM_ERR_VALIDATION', detail: `${field}: is required` };
    expect(parse(operation, { [field]: undefined })).toEqual(refusal);
  });
});

describe('a timestamp', () => {
  it.each(timestamps.accepted)('a timestamp is accepted: $comment: $sent', ({ sent, stored }) => {
    expect(parse('createChamber', { lobbyDeadline: sent })).toMatchObject({ lobbyDeadline: stored });
  });

  it.each(timestamps.refused)('a timestamp is rejected: $comment: $sent', ({ sent }) => {
    expect(parse('createChamber', { lobbyDeadline: sent })).toEqual(refusalOf('lobbyDeadline'));
  });

  it('the error for a timestamp without seconds or an offset asks for both', () => {
    const detail = expect.stringContaining('with seconds and an offset');
    expect(parse('createChamber', { lobbyDeadline: '2030-01-31T12:00Z' })).toMatchObject({ detail });
  });
});

describe('a body', () => {
  it('missing members of a body get their defaults', () => {
    expect(parse('createChamber', {})).toMatchObject({ minBackersForGraduation: 1 });
    expect(parse('propose', { description: undefined })).toMatchObject({ description: '' });
    expect(parse('debate', {})).toEqual({ comment: 'hm', ideaId: null });
  });

  it('the body of amend needs a name or a description', () => {
    expect(parse('amend', { description: undefined })).toEqual({ ideaId: 'idea-1', name: 'Idea' });
    expect(parse('amend', { name: undefined, description: undefined })).toEqual(refusalOf('body'));
  });

  it('only join and pass allow an absent body', () => {
    expect(bodyOf('join', undefined)).toEqual({});
    expect(bodyOf('pass', undefined)).toEqual({});
    expect(outcomeOf(() => bodyOf('debate', undefined))).toMatchObject({ detail: 'body: is required' });
  });

  it.each(Object.keys(BODIES) as Operation[])(
    'the body of %s must be an object without unknown members',
    (operation) => {
      for (const body of [null, [], 'text', 7, true]) {
        expect(outcomeOf(() => bodyOf(operation, body))).toEqual(refusalOf('body'));
      }
      const detail = expect.stringContaining('unknown member "extra"');
      expect(parse(operation, { extra: 1 })).toEqual({ code: 'FORUM_ERR_VALIDATION', detail });
    },
  );

  it('one error names every wrong, missing and unknown member of a body', () => {
    const weak = `0x01${'00'.repeat(31)}`;
    const personality = { loves: 'a', hates: [1], mood: 'x' };
    expect(problemsOf('register', { pubkeyHex: weak, walletAddress: '0x1', operatorEmail: 'x', personality })).toEqual([
      'pubkeyHex',
      'walletAddress',
      'personality',
      'personality.loves',
      'personality.hates[0]',
      'operatorEmail',
    ]);
    expect(problemsOf('createChamber', { nmae: 'x' }).sort()).toEqual(['body', 'name', ...DEADLINES].sort());
    const allocations = [{ ideaId: 1, bps: -1 }, { bps: 1 }, null];
    expect(problemsOf('reveal', { allocations, salt: '0x' })).toEqual([
      'allocations[0].ideaId',
      'allocations[0].bps',
      'allocations[1].ideaId',
      'allocations[2]',
      'salt',
    ]);
    expect(problemsOf('propose', {})).toEqual(['name', 'ticker']);
    expect(problemsOf('debate', { ideaId: 1, refinement: 1 })).toEqual(['ideaId', 'comment', 'refinement']);
  });

  it('the error for a body names 16 unknown members, and counts the others', () => {
    const extra = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`extra${index}`, 1]));
    const { detail } = parse('debate', { ...extra, comment: '' }) as { readonly detail: string };
    expect(detail.match(/unknown member "/g)).toHaveLength(16);
    expect(detail).toMatch(/; body: 4 more unknown members; comment: /);
  });

  it('the error for a body with more than 1,000 members and elements names only the first problem', () => {
    const problems = (length: number) => problemsOf('reveal', { allocations: Array(length).fill(1), salt: '0x' });
    expect(problems(990)).toHaveLength(991);
    expect(problems(1_000)).toEqual(['allocations[0]']);
    const valid = Array.from({ length: 2_000 }, (_, index) => ({ ideaId: `idea-${index}`, bps: 1 }));
    expect(parse('reveal', { allocations: valid })).toMatchObject({ allocations: valid });
  });

  it('the error for a misspelt member of a body suggests the right name', () => {
    const detail = expect.stringContaining('unknown member "lobyDeadline"; did you mean "lobbyDeadline"?');
    expect(parse('createChamber', { lobyDeadline: 'x' })).toEqual({ code: 'FORUM_ERR_VALIDATION', detail });
  });

  it.each([
    ['join', 'seen'],
    ['debate', 'ideaId, comment, refinement, replyTo, stance, seen'],
  ] as const)('the error for an unknown member in the body of %s names the known members: %s', (operation, known) => {
    const detail = `body: unknown member "extra"; known: ${known}`;
    expect(parse(operation, { extra: 1 })).toEqual({ code: 'FORUM_ERR_VALIDATION', detail });
  });

  it.each(['__proto__', 'constructor', 'prototype', 'toString'])(
    'a body with an unknown member %s is rejected',
    (name) => {
      const body = JSON.parse(`{"patch":{"${name}":["x"]}}`);
      const detail = expect.stringContaining(`unknown member "${name}"`);
      expect(outcomeOf(() => bodyOf('changePersonality', body))).toEqual({ code: 'FORUM_ERR_VALIDATION', detail });
      expect(outcomeOf(() => bodyOf('join', JSON.parse(`{"${name}":{}}`)))).toEqual({
        code: 'FORUM_ERR_VALIDATION',
        detail,
      });
    },
  );

  it('a refinement is stored exactly as sent, with any keys', () => {
    const text = '{"__proto__":{"a":1},"constructor":{"prototype":[]},"b":[null,-1.5]}';
    const { refinement } = parseBody(moves.debate, { json: JSON.parse(`{"comment":"hm","refinement":${text}}`) });
    expect(JSON.stringify(refinement)).toBe(text);
  });

  it('new requests must have exact numbers; lines of the log may have others', () => {
    const text = `{"allocations":[{"ideaId":"idea-1","bps":1.0000000000000001}],"salt":"0x${'00'.repeat(16)}"}`;
    const json: JsonValue = JSON.parse(text);
    expect(parseBody(moves.reveal, { json })).toMatchObject({ allocations: [{ bps: 1 }] });
    expect(outcomeOf(() => parseBody(moves.reveal, { json, text }))).toEqual(refusalOf('allocations'));
  });
});

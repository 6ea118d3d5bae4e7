import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { leafHash } from '../../src/crypto/merkle.ts';
import {
  InvalidStub,
  lineLeaf,
  originalProblem,
  storedLeaf,
  stubClaim,
  type Withholding,
  withhold,
} from '../../src/crypto/stub.ts';
import { StubReader } from '../../src/crypto/stub-reader.ts';
import { publicKeyOf, signWith } from '../../src/keys/private-key.ts';
import { moveOfEvent } from '../../src/moves/registry.ts';
import { type ForumEvent, fromLine, toLine } from '../../src/vocabulary/events.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { type Withheld, withheldProblem } from '../../src/vocabulary/withheld.ts';

const SEED = new Uint8Array(32).fill(7);
const KEY = { publicKey: publicKeyOf(SEED), sign: signWith(SEED) };
const LOG = 'a'.repeat(32);
const AT = Date.UTC(2030, 0, 2);
const TERMS = { at: AT, reason: 'personal-data', log: LOG, key: KEY } as const;
const DID = 'did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw';

interface Line {
  readonly type: string;
  readonly payload: object;
  readonly body?: object | string | null;
  readonly chamberId?: number | null;
}

function lineOf({ type, payload, body, chamberId = 1 }: Line): string {
  const isService = body === undefined;
  const request = {
    body: typeof body === 'object' && body !== null ? JSON.stringify(body) : body,
    contentDigest: 'sha-256=:x:',
    method: 'POST',
    signature: 'sig1=:x:',
    signatureInput: 'sig1=x',
    targetUri: 'https://forum.example/x',
  };
  const event = {
    ...{ eventId: 3, chamberId, type, did: isService ? null : DID, ts: '2030-01-01T00:00:00.000Z' },
    ...{ prev: `0x${'1'.repeat(64)}`, payload, request: isService ? null : request },
  };
  return canonicalJson(event);
}

const PROPOSED = {
  type: 'chamber.proposed',
  payload: {
    ideaId: 'idea-1',
    slot: 1,
    name: 'Name',
    ticker: 'T',
    description: 'What',
    creatorWallet: '0x',
    accountEventId: 1,
  },
  body: { name: 'Name', ticker: 'T', description: 'What' },
};
const AMENDED = {
  type: 'chamber.amended',
  payload: { ideaId: 'idea-1', version: 2, description: 'New', accountEventId: 1 },
  body: { ideaId: 'idea-1', description: 'New' },
};
const DEBATED = {
  type: 'chamber.debated',
  payload: { ideaId: null, comment: 'Words', refinement: { a: 1 }, accountEventId: 1 },
  body: { comment: 'Words', refinement: { a: 1 } },
};
const JOINED = { type: 'chamber.joined', payload: { turnOrder: 0, label: 'Ann' }, body: '' };
const SUBMITTED = { ideaId: 'idea-1', chainId: 1, nonce: 2, txHash: `0x${'2'.repeat(64)}` };

function stubOf(line: Line, terms: Parameters<typeof withhold>[1] = TERMS) {
  const made = withhold(lineOf(line), terms);
  if (!('stub' in made)) throw new Error(made.refused);
  return fromLine(made.stub) as ForumEvent & { readonly withheld: Withheld };
}

describe('the contents of a stub', () => {
  it.each<[string, Line, object, boolean]>([
    [
      'a registration: no label, an empty personality',
      { type: 'agent.registered', payload: { agentId: 'a', label: 'L', personality: { style: 's' } }, body: null },
      { agentId: 'a', personality: {} },
      false,
    ],
    [
      'a personality: empty, and so is the patch',
      {
        type: 'agent.personality_changed',
        payload: { patch: { style: 's' }, personality: { style: 's', loves: ['x'] } },
        body: { patch: { style: 's' } },
      },
      { patch: {}, personality: {} },
      false,
    ],
    [
      'a personality after an empty patch: the request stays',
      {
        type: 'agent.personality_changed',
        payload: { patch: {}, personality: { style: 's' } },
        body: { patch: {} },
      },
      { patch: {}, personality: {} },
      true,
    ],
    [
      'a creation: another name, no topic',
      { type: 'chamber.created', payload: { name: 'N', topic: 'T', turnSeconds: 9 }, body: { name: 'N', topic: 'T' } },
      { name: '[withheld]', turnSeconds: 9 },
      false,
    ],
    ['a join: no label; the request stays', JOINED, { turnOrder: 0 }, true],
    [
      'a proposal: another name, an empty description',
      PROPOSED,
      { ...PROPOSED.payload, name: '[withheld]', description: '' },
      false,
    ],
    [
      'an amendment: absent members stay absent',
      AMENDED,
      { ideaId: 'idea-1', version: 2, description: '', accountEventId: 1 },
      false,
    ],
    [
      'a comment: another comment, no refinement',
      DEBATED,
      { ideaId: null, comment: '[withheld]', accountEventId: 1 },
      false,
    ],
    [
      'a deployment’s transaction: no bytes',
      { type: 'relay.deploy_submitted', payload: { ...SUBMITTED, rawTransaction: '0x02' } },
      SUBMITTED,
      false,
    ],
    [
      'a failed deployment: another reason',
      { type: 'idea.deploy_failed', payload: { ideaId: 'idea-1', txHash: null, reason: 'reverted: Name' } },
      { ideaId: 'idea-1', txHash: null, reason: '[withheld]' },
      false,
    ],
  ])('a stub keeps everything except the texts of %s', (_title, line, payload, keepsRequest) => {
    const stub = stubOf(line);
    const { payload: _, request, ...rest } = fromLine(lineOf(line));
    expect(stub).toEqual({
      ...rest,
      payload,
      request: keepsRequest ? request : null,
      withheld: {
        at: '2030-01-02T00:00:00.000Z',
        key: Buffer.from(KEY.publicKey).toString('base64url'),
        keyid: expect.stringMatching(/^[\w-]{43}$/),
        leaf: toHex(leafHash(Buffer.from(lineOf(line)))),
        log: LOG,
        reason: 'personal-data',
        signature: expect.stringMatching(/^[\w-]{86}$/),
      },
    });
    expect(canonicalJson(stub)).toBe(toLine(stub));
    expect(stubClaim(stub)?.leaf).toEqual(leafHash(Buffer.from(lineOf(line))));
  });

  it('a stub drops the evidence of a body that earlier releases did not keep, because its digest would confirm guesses', () => {
    const payload = { agentId: 'a', personality: { style: 's' } };
    expect(stubOf({ type: 'agent.registered', payload, body: null }).request).toBeNull();
  });
});

describe('lines that are never withheld', () => {
  it.each(
    (['chamber.passed', 'chamber.admitted', 'chamber.started', 'chamber.withdrawn'] as const).map(
      (type) => [type, moveOfEvent[type].example.payload] as const,
    ),
  )('a line of type %s is never withheld', (type, payload) => {
    expect(withhold(lineOf({ type, payload, body: {} }), TERMS)).toEqual({ refused: 'noTexts' });
  });

  it.each<[string, Line]>([
    ['a commitment', { type: 'allocation.committed', payload: { commitment: '0x12' }, body: {} }],
    ['a reveal', { type: 'allocation.revealed', payload: { allocations: [], salt: '0x12' }, body: {} }],
    ['a join without a label', { ...JOINED, payload: { turnOrder: 0 } }],
    [
      'a personality that is empty',
      { type: 'agent.personality_changed', payload: { patch: {}, personality: {} }, body: { patch: {} } },
    ],
    [
      'a failure with a reason that no one wrote',
      { type: 'idea.deploy_failed', payload: { ideaId: 'idea-1', txHash: null, reason: '[withheld]' } },
    ],
    ['the commitment’s transaction', { type: 'relay.commit_submitted', payload: SUBMITTED }],
  ])('a line is never withheld if it is %s', (_title, line) => {
    expect(withhold(lineOf(line), TERMS)).toEqual({ refused: 'noTexts' });
  });

  it('a stub is never withheld again', () => {
    expect(withhold(toLine(stubOf(DEBATED)), TERMS)).toEqual({ refused: 'isStub' } satisfies Withholding);
  });
});

describe('the leaf', () => {
  it('the leaf of a stub is that of the original line', () => {
    expect(storedLeaf(Buffer.from(toLine(stubOf(DEBATED))))).toEqual(leafHash(Buffer.from(lineOf(DEBATED))));
  });

  it('the leaf of any other line is its double hash', () => {
    for (const line of [lineOf(DEBATED), '{}', '', '}}', '{"withheld":{}}']) {
      expect(storedLeaf(Buffer.from(line))).toEqual(leafHash(Buffer.from(line)));
      expect(lineLeaf(Buffer.from(line))).toEqual(leafHash(Buffer.from(line)));
    }
  });

  it('a text that looks like the end of a stub does not change the leaf', () => {
    const { withheld } = stubOf(DEBATED);
    const comment = `,"withheld":${canonicalJson(withheld)}}`;
    const line = lineOf({ ...DEBATED, payload: { ...DEBATED.payload, comment } });
    expect(storedLeaf(Buffer.from(line))).toEqual(leafHash(Buffer.from(line)));
  });

  it('a reader of foreign lines does not trust the leaf of a stub', () => {
    expect(() => lineLeaf(Buffer.from(toLine(stubOf(DEBATED))))).toThrow(InvalidStub);
  });
});

describe('the signature', () => {
  it('the signature of a stub verifies with node:crypto over the title, a line feed and the canonical stub without the signature', () => {
    const stub = stubOf(PROPOSED);
    const { signature, ...withheld } = stub.withheld;
    const text = `Chamber Coordination Service withheld line\n${canonicalJson({ ...stub, withheld })}`;
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: withheld.key }, format: 'jwk' });
    expect(verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'))).toBe(true);
  });
});

describe('a reader', () => {
  const stub = stubOf(DEBATED);
  const reader = new StubReader(() => undefined);
  const read = (event: object) => reader.leafOf(Buffer.from(toLine(event as ForumEvent)), event as ForumEvent);
  const resigned = (changes: object, line: Line = DEBATED) => {
    const changed = { ...stubOf(line), ...changes } as typeof stub;
    const { signature: _, ...withheld } = changed.withheld;
    const text = `Chamber Coordination Service withheld line\n${canonicalJson({ ...changed, withheld })}`;
    const signature = Buffer.from(KEY.sign(Buffer.from(text))).toString('base64url');
    return { ...changed, withheld: { ...withheld, signature } };
  };

  it('a reader accepts the leaf of a stub whose signature verifies', () => {
    expect(read(stub)).toEqual(leafHash(Buffer.from(lineOf(DEBATED))));
  });

  it('a reader hashes a line that is not a stub', () => {
    expect(read(fromLine(lineOf(DEBATED)))).toEqual(leafHash(Buffer.from(lineOf(DEBATED))));
  });

  it.each<[string, object, RegExp]>([
    ['with another leaf', { ...stub, withheld: { ...stub.withheld, leaf: `0x${'3'.repeat(64)}` } }, /does not verify/],
    ['by another author', { ...stub, did: DID.replace('M', 'N') }, /does not verify/],
    ['of another chamber', { ...stub, chamberId: 2 }, /does not verify/],
    [
      'with the signature of a different stub',
      { ...stub, withheld: { ...stub.withheld, signature: stubOf(PROPOSED).withheld.signature } },
      /does not verify/,
    ],
    [
      'with the keyid of a different key',
      { ...stub, withheld: { ...stub.withheld, keyid: 'A'.repeat(43) } },
      /does not match its key/,
    ],
    [
      'that still holds a text',
      resigned({ payload: { ...stub.payload, comment: 'Words' } }),
      /text left in its payload: comment/,
    ],
    ['that still holds its refinement', resigned({ payload: { ...stub.payload, refinement: null } }), /must be absent/],
    [
      'with a request that holds the text',
      resigned({ request: fromLine(lineOf(DEBATED)).request }),
      /text left in its request/,
    ],
    [
      'over a vote',
      resigned({ type: 'allocation.revealed', payload: { allocations: [], salt: '0x00' } }),
      /which has no texts/,
    ],
    ['with an unknown reason', resigned({ withheld: { ...stub.withheld, reason: 'because' } }), /invalid reason/],
  ])('a reader rejects a stub %s', (_title, event, message) => {
    expect(() => read(event)).toThrow(message);
    expect(() => read(event)).toThrow(InvalidStub);
  });

  it('a reader rejects a stub that the caller does not accept as the service’s', () => {
    const strict = new StubReader(({ log }) => (log === LOG ? 'is a stub of another log' : undefined));
    expect(() => strict.leafOf(Buffer.from(toLine(stub)), stub)).toThrow('is a stub of another log');
  });

  it('a reader rejects a stub that is not in canonical form', () => {
    const line = JSON.stringify({ ...stub, aa: undefined, chamberId: 1, did: stub.did });
    expect(() => reader.leafOf(Buffer.from(` ${line}`), stub)).toThrow(/canonical form/);
  });
});

describe('the member withheld', () => {
  const { withheld } = stubOf(DEBATED);
  it.each<[unknown, string | undefined]>([
    [withheld, undefined],
    [null, 'withheld is not an object'],
    [[], 'withheld is not an object'],
    [{ ...withheld, more: 1 }, 'withheld has the unknown member "more"'],
    [{ ...withheld, at: undefined }, 'withheld lacks at'],
    [{ ...withheld, at: '2030-02-30T00:00:00.000Z' }, 'withheld has an invalid at'],
    [{ ...withheld, leaf: withheld.leaf.toUpperCase() }, 'withheld has an invalid leaf'],
    [{ ...withheld, log: 'x' }, 'withheld has an invalid log'],
    [{ ...withheld, signature: `${'A'.repeat(85)}B` }, 'withheld has an invalid signature'],
  ])('the member withheld is checked: %j: %s', (value, problem) => {
    expect(withheldProblem(value)).toBe(problem);
  });
});

/** Returns the stub of a proposal, with the leaf of another line. */
function withLeafOf(line: string): ForumEvent {
  const stub = stubOf(PROPOSED);
  return { ...stub, withheld: { ...stub.withheld, leaf: toHex(leafHash(Buffer.from(line))) } };
}

describe('an original', () => {
  it('an original line explains its stub', () => {
    expect(originalProblem(lineOf(PROPOSED), stubOf(PROPOSED))).toBeUndefined();
  });

  it.each<[string, string, ForumEvent, string]>([
    ['a different line', lineOf(AMENDED), stubOf(PROPOSED), 'it has a different leaf'],
    [
      'a line without texts',
      lineOf({ ...JOINED, payload: { turnOrder: 0 } }),
      withLeafOf(lineOf({ ...JOINED, payload: { turnOrder: 0 } })),
      'it contains no text',
    ],
    ['a stub', toLine(stubOf(PROPOSED)), withLeafOf(toLine(stubOf(PROPOSED))), 'it is a stub itself'],
    [
      'the line, but its stub has a different fact',
      lineOf(PROPOSED),
      { ...stubOf(PROPOSED), did: DID.replace('M', 'N') } as ForumEvent,
      'the stub differs from it in more than its texts',
    ],
  ])('an original does not explain a stub if it is %s', (_title, original, stub, problem) => {
    expect(originalProblem(original, stub as ReturnType<typeof stubOf>)).toBe(problem);
  });
});

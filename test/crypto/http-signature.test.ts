import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import fc from 'fast-check';
import { httpbis } from 'http-message-signatures';
import { type InnerList, parseDictionary, serializeInnerList } from 'structured-headers';
import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/http-signature.json' with { type: 'json' };
import { contentDigestOf } from '../../src/crypto/content-digest.ts';
import { toDid } from '../../src/crypto/did-key.ts';
import {
  FOREIGN_CHARS_MAX,
  FOREIGN_LABELS_MAX,
  isForeignOnly,
  type ParsedSignature,
  parseSignature,
  SignatureError,
  signatureBase,
  signatureKey,
} from '../../src/crypto/http-signature.ts';

import { fromHex } from '../../src/vocabulary/values.ts';

// The test key is that of RFC 9421, B.1.4.
const X = 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs';
const D = 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU';
const PRIVATE_KEY = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d: D, x: X }, format: 'jwk' });
const DID = toDid(Buffer.from(X, 'base64url'));

const COVERED = '("@method" "@target-uri" "content-digest")';
const { signature } = vectors.accepted[0] as (typeof vectors.accepted)[number];

function isSignedBy(publicKey: Uint8Array, base: string, bytes: Uint8Array): boolean {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') };
  return verify(null, Buffer.from(base), createPublicKey({ key: jwk, format: 'jwk' }), bytes);
}

describe('a signed request', () => {
  it.each(vectors.accepted)('a signed request is parsed and its signature base rebuilt: $comment', (vector) => {
    const parsed = parseSignature(vector);
    const base = signatureBase(parsed, vector);
    expect(base).toBe(vector.signatureBase);
    expect(isSignedBy(fromHex(vector.publicKey), base, parsed.signature)).toBe(true);
  });

  it('parsing a signed request yields all parameters of the header', () => {
    const signatureInput =
      'sig1=("content-digest" "@method" "@target-uri");nonce="a\\"b\\\\c";created=12;alg="ed25519";expires=34;keyid="did:key:z6"';
    expect(parseSignature({ signatureInput, signature })).toEqual({
      params: signatureInput.slice('sig1='.length),
      components: ['content-digest', '@method', '@target-uri'],
      created: 12,
      keyid: 'did:key:z6',
      nonce: 'a"b\\c',
      expires: 34,
      signature: new Uint8Array(Buffer.from(signature.slice('sig1=:'.length, -1), 'base64')),
    } satisfies ParsedSignature);
  });

  it.each([
    ['', {}],
    [';nonce="n"', { nonce: 'n' }],
    [';nonce=""', { nonce: '' }],
    [';expires=34', { expires: 34 }],
    [';nonce="n";expires=34', { nonce: 'n', expires: 34 }],
    [';expires=34;nonce="n"', { nonce: 'n', expires: 34 }],
  ])('parameters in the usual order may end with %s', (end, optional) => {
    const params = `${COVERED};created=12;keyid="did:key:z6";alg="ed25519"${end}`;
    expect(parseSignature({ signatureInput: `sig1=${params}`, signature })).toEqual({
      params,
      components: ['@method', '@target-uri', 'content-digest'],
      created: 12,
      keyid: 'did:key:z6',
      ...optional,
      signature: expect.any(Uint8Array),
    });
  });

  it('a parsed request has no nonce and no expires if the header lacks them', () => {
    const signatureInput = 'sig1=("@method" "@target-uri" "content-digest");created=0;keyid="";alg="ed25519"';
    const names = ['params', 'components', 'created', 'keyid', 'signature'];
    expect(Object.keys(parseSignature({ signatureInput, signature })).sort()).toEqual(names.sort());
  });

  it('a request signed by an independent client is parsed', async () => {
    const body = '{"comment":"hello"}';
    const url = 'https://chambers.example/chambers/1/debate?x=%20y';
    const contentDigest = contentDigestOf(Buffer.from(body));
    const { headers } = await httpbis.signMessage(
      {
        key: { id: DID, alg: 'ed25519', sign: async (data) => sign(null, data, PRIVATE_KEY) },
        name: 'sig1',
        fields: ['@method', '@target-uri', 'content-digest'],
        params: ['created', 'keyid', 'alg', 'nonce', 'expires'],
        paramValues: { created: new Date(1_767_225_600_000), expires: new Date(1_767_225_660_000), nonce: 'n "1"' },
      },
      { method: 'POST', url, headers: { 'Content-Digest': contentDigest } as Record<string, string> },
    );
    const sent = new Headers(headers);
    const parsed = parseSignature({
      signatureInput: sent.get('signature-input') ?? '',
      signature: sent.get('signature') ?? '',
    });
    expect(parsed).toMatchObject({ created: 1_767_225_600, expires: 1_767_225_660, nonce: 'n "1"', keyid: DID });
    const base = signatureBase(parsed, { method: 'POST', targetUri: url, contentDigest });
    expect(isSignedBy(Buffer.from(X, 'base64url'), base, parsed.signature)).toBe(true);
  });
});

describe('additional signatures', () => {
  const own = vectors.accepted[0] as (typeof vectors.accepted)[number];
  const foreign = (count: number, more = '') => {
    const labels = Array.from({ length: count }, (_, index) => `proxy-${index}`);
    const inputs = labels.map((label) => `${label}=("@authority" "signature";key="sig1");keyid="a, \\"b\\""${more}`);
    return { inputs, signatures: labels.map((label) => `${label}=:AAAA:`) };
  };
  const beside = ({ inputs, signatures }: ReturnType<typeof foreign>) => ({
    signatureInput: [...inputs, own.signatureInput].join(', '),
    signature: [own.signature, ...signatures].join(',\t'),
  });

  it.each(vectors.accepted)('additional signatures do not change sig1: $comment', ({ signatureInput, signature }) => {
    const alone = parseSignature({ signatureInput, signature });
    for (let count = 1; count <= FOREIGN_LABELS_MAX; count++) {
      const { inputs, signatures } = foreign(count);
      const behind = [signatureInput, ...inputs].join(',');
      expect(parseSignature({ signatureInput: behind, signature: [signature, ...signatures].join(' , ') })).toEqual(
        alone,
      );
      const inFront = [...inputs, signatureInput].join(' ,\t');
      expect(parseSignature({ signatureInput: inFront, signature: [...signatures, signature].join(',') })).toEqual(
        alone,
      );
    }
  });

  it.each([
    ['that covers nothing', 'proxy=()', 'proxy=:AAAA:'],
    ['without a list and bytes', 'proxy=1', 'proxy'],
    ['with a string like sig1', 'proxy=("a");tag="x, sig1=()"', 'proxy="sig1=:AAAA:"'],
  ])('an additional signature may be one %s', (_, input, bytes) => {
    const headers = { signatureInput: `${input}, ${own.signatureInput}`, signature: `${own.signature}, ${bytes}` };
    expect(parseSignature(headers)).toEqual(parseSignature(own));
  });

  it.each(vectors.refused)(
    'additional signatures do not make a rejected one pass: $comment',
    ({ signatureInput, signature }) => {
      const { inputs, signatures } = foreign(1);
      const headers = {
        signatureInput: [signatureInput, ...inputs].join(', '),
        signature: [signature, ...signatures].join(', '),
      };
      // The members of a dictionary may be surrounded by tabs and spaces.
      if (/^\t|\n$/.test(signatureInput)) return;
      expect(refusalOf(() => parseSignature(headers)).step).toBe('form');
    },
  );

  it.each<[string, ReturnType<typeof foreign>, string]>([
    ['more than four', foreign(FOREIGN_LABELS_MAX + 1), 'at most 4 labels besides sig1'],
    ['a duplicate label', { inputs: ['p=()', 'p=()'], signatures: ['p=:AAAA:'] }, 'each label occurs once'],
    ['a duplicate signature', { inputs: ['p=()'], signatures: ['p=:AAAA:', 'p=:AAAA:'] }, 'each label occurs once'],
    ['a duplicate sig1', { inputs: [own.signatureInput], signatures: [own.signature] }, 'each label occurs once'],
    ['one in Signature-Input alone', { inputs: ['p=()'], signatures: [] }, 'same labels'],
    ['one in Signature alone', { inputs: [], signatures: ['p=:AAAA:'] }, 'same labels'],
    ['two of different labels', { inputs: ['p=()'], signatures: ['q=:AAAA:'] }, 'same labels'],
    ['an invalid label', { inputs: ['P=()'], signatures: ['p=:AAAA:'] }, 'dictionary'],
    ['an empty one', { inputs: [''], signatures: ['p=:AAAA:'] }, 'dictionary'],
    ['an unterminated list', { inputs: ['p=("a'], signatures: ['p=:AAAA:'] }, 'dictionary'],
    ['unterminated bytes', { inputs: ['p=()'], signatures: ['p=:AAAA'] }, 'dictionary'],
    ['too many characters', foreign(1, `;tag="${'x'.repeat(FOREIGN_CHARS_MAX)}"`), 'at most 4096 characters'],
  ])('additional signatures are rejected: %s', (_, members, mentions) => {
    const refusal = refusalOf(() => parseSignature(beside(members)));
    expect(refusal.step).toBe('form');
    expect(refusal.message).toContain(mentions);
  });

  it('additional signatures alone are not a signature of the agent', () => {
    const { inputs, signatures } = foreign(FOREIGN_LABELS_MAX);
    const headers = { signatureInput: inputs.join(', '), signature: signatures.join(', ') };
    expect(isForeignOnly(headers)).toBe(true);
    expect(isForeignOnly({ ...headers, signature: signatures.slice(1).join(', ') })).toBe(false);
    expect(isForeignOnly(beside(foreign(1)))).toBe(false);
    expect(isForeignOnly(own)).toBe(false);
    expect(isForeignOnly({ signatureInput: '', signature: '' })).toBe(false);
    expect(refusalOf(() => parseSignature(headers)).message).toContain('must contain the label sig1');
  });
});

describe('a header outside the profile', () => {
  it.each(vectors.refused)('a header outside the profile is rejected: $comment', (vector) => {
    const refusal = refusalOf(() => parseSignature(vector));
    expect(refusal.step).toBe('form');
    expect(refusal.message).toContain(vector.mentions);
  });

  it('the error quotes only a part of a long header', () => {
    const long = 'x'.repeat(10_000);
    for (const signatureInput of [`sig1=(${long})`, `sig1=${COVERED};${long}="1"`, `sig1=${COVERED}${long}`]) {
      expect(refusalOf(() => parseSignature({ signatureInput, signature })).message.length).toBeLessThan(300);
    }
  });
});

describe('a signature base', () => {
  const parsed = parseSignature(vectors.accepted[0] as (typeof vectors.accepted)[number]);
  const request = { method: 'POST', targetUri: 'https://chambers.example/', contentDigest: 'sha-256=::' };

  it.each(['method', 'targetUri', 'contentDigest'] as const)(
    'a signature base cannot contain a %s with a line break',
    (member) => {
      for (const lineBreak of ['\n', '\r']) {
        const forged = { ...request, [member]: `${request[member]}${lineBreak}"@method": GET` };
        expect(refusalOf(() => signatureBase(parsed, forged)).step).toBe('form');
      }
    },
  );
});

describe('the key of a signature in the log', () => {
  const bytes = Uint8Array.from({ length: 64 }, (_, index) => 255 - index);

  it.each([
    [0, '0000000000000000'],
    [255, '00000000000000ff'],
    [256, '0000000000000100'],
    [1_767_225_600, '000000006955b900'],
    [999_999_999_999_999, '00038d7ea4c67fff'],
  ])('the key of a signature is `created` in 8 bytes, then the signature: %i', (created, hex) => {
    const key = signatureKey({ created, signature: bytes });
    expect(Buffer.from(key, 'latin1').toString('hex')).toBe(hex + Buffer.from(bytes).toString('hex'));
    expect(key).toHaveLength(72);
  });
});

describe('an accepted Signature-Input', () => {
  it('an accepted Signature-Input parses like structured-headers, in any order and spacing, with any nonce', () => {
    fc.assert(fc.property(validInput(), (signatureInput) => expectSameAsReference(signatureInput)));
  });

  it('an accepted Signature-Input parses like structured-headers after a random edit', () => {
    let acceptedCount = 0;
    fc.assert(
      fc.property(editedInput(), (signatureInput) => {
        if (!isAccepted(signatureInput)) return;
        acceptedCount++;
        expectSameAsReference(signatureInput);
      }),
      { numRuns: 5000 },
    );
    expect(acceptedCount).toBeGreaterThan(0);
  });
});

function refusalOf(act: () => unknown): SignatureError {
  try {
    act();
  } catch (error) {
    if (error instanceof SignatureError) return error;
    throw error;
  }
  throw new Error('the header was not rejected');
}

function isAccepted(signatureInput: string): boolean {
  try {
    parseSignature({ signatureInput, signature });
    return true;
  } catch (error) {
    if (error instanceof SignatureError) return false;
    throw error;
  }
}

function expectSameAsReference(signatureInput: string): void {
  const parsed = parseSignature({ signatureInput, signature });
  const dictionary = parseDictionary(signatureInput);
  const list = dictionary.get('sig1') as InnerList;
  const [items, parameters] = list;
  expect([...dictionary.keys()]).toEqual(['sig1']);
  expect(parsed.params).toBe(serializeInnerList(list));
  expect(parsed.components).toEqual(items.map(([component]) => component));
  expect(items.flatMap(([, ofItem]) => [...ofItem])).toEqual([]);
  expect(parsed.created).toBe(parameters.get('created'));
  expect(parsed.keyid).toBe(parameters.get('keyid'));
  expect(parsed.nonce).toBe(parameters.get('nonce'));
  expect(parsed.expires).toBe(parameters.get('expires'));
  expect(parameters.get('alg')).toBe('ed25519');
}

function validInput(): fc.Arbitrary<string> {
  const spaces = fc.constantFrom('', '', ' ', '   ');
  const seconds = fc.maxSafeNat().map((n) => String(n % 10 ** 15));
  const nonce = fc.string({ unit: 'grapheme-ascii' }).map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`);
  const parameters = fc
    .tuple(seconds, nonce, seconds)
    .map(([created, text, expires]) => [
      `created=${created}`,
      `keyid="${DID}"`,
      'alg="ed25519"',
      `nonce=${text}`,
      `expires=${expires}`,
    ])
    .chain((texts) => fc.shuffledSubarray(texts, { minLength: 5 }));
  const components = fc.shuffledSubarray(['"@method"', '"@target-uri"', '"content-digest"'], { minLength: 3 });
  return fc
    .tuple(components, parameters, fc.array(spaces, { minLength: 10, maxLength: 10 }))
    .map(
      ([items, texts, gaps]) =>
        `${gaps[0]}sig1=(${gaps[1]}${items.join(` ${gaps[2]}`)}${gaps[3]})${texts
          .map((text, i) => `;${gaps[4 + i]}${text}`)
          .join('')}${gaps[9]}`,
    );
}

/** Returns a valid header with up to three characters replaced, dropped or inserted. */
function editedInput(): fc.Arbitrary<string> {
  const piece = fc.constantFrom('', ' ', '"', ';', '=', '(', ')', ',', '\\', '0', '-', '.', 'a', 'A', ':', '\t', '\n');
  const edit = fc.record({ at: fc.nat({ max: 250 }), length: fc.nat({ max: 2 }), piece });
  return fc
    .tuple(validInput(), fc.array(edit, { minLength: 1, maxLength: 3 }))
    .map(([text, edits]) =>
      edits.reduce((soFar, { at, length, piece }) => soFar.slice(0, at) + piece + soFar.slice(at + length), text),
    );
}

// The worked example of stubs: each step from the original line to the signature, checked with both node:crypto and the service's own code.
import { createPublicKey, hash, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/stub.json' with { type: 'json' };
import { leafHash } from '../../src/crypto/merkle.ts';
import { withhold } from '../../src/crypto/stub.ts';
import { publicKeyOf, signWith } from '../../src/keys/private-key.ts';
import { toHex } from '../../src/vocabulary/values.ts';

describe.each(vectors.stubs)('the example of $comment', (vector) => {
  const { line, leaf, publicKey, thumbprintOf, thumbprint, signedText, signature, stub } = vector;

  it('the example’s stub has the leaf of the original line', () => {
    expect(toHex(leafHash(Buffer.from(line)))).toBe(leaf);
  });

  it('the example’s stub names the thumbprint of the key whose signature verifies', () => {
    expect(hash('sha256', thumbprintOf, 'base64url')).toBe(thumbprint);
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' });
    expect(verify(null, Buffer.from(signedText), key, Buffer.from(signature, 'base64url'))).toBe(true);
    expect(verify(null, Buffer.from(`${signedText}\n`), key, Buffer.from(signature, 'base64url'))).toBe(false);
  });

  it('the service creates the example’s stub from the line', () => {
    const seed = Buffer.from(vectors.seed, 'hex');
    const { withheld } = JSON.parse(stub);
    const terms = { at: Date.parse(withheld.at), reason: withheld.reason, log: withheld.log };
    const key = { publicKey: publicKeyOf(seed), sign: signWith(seed) };
    expect(withhold(line, { ...terms, key })).toEqual({ stub });
    expect(signedText.split('\n')[1]).toBe(stub.replace(`,"signature":"${signature}"`, ''));
  });
});

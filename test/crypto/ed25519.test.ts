// Vectors that pin the verification rule that every verifier follows.
import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/ed25519.json' with { type: 'json' };
import { weaknessOf } from '../../src/crypto/did-key.ts';
import { hasSmallOrderR, isSignedBy, toVerifyingKey } from '../../src/crypto/verify.ts';
import { fromHex } from '../../src/vocabulary/values.ts';

describe('an Ed25519 signature', () => {
  it.each(vectors)('an Ed25519 signature is judged by the rule: $comment', (vector) => {
    const publicKey = fromHex(vector.publicKey);
    expect(weaknessOf(publicKey)).toBeUndefined();
    const isValid = isSignedBy(toVerifyingKey(publicKey), fromHex(vector.message), fromHex(vector.signature));
    expect(isValid).toBe(vector.isValid);
  });

  it('the verdict does not depend on earlier verifications with the same key', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const key = toVerifyingKey(new Uint8Array(Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')));
    for (let index = 0; index < 16; index++) {
      const message = new Uint8Array(index);
      const signature = new Uint8Array(sign(null, message, privateKey));
      expect(isSignedBy(key, message, signature)).toBe(true);
      const altered = signature.with(index * 2, (signature[index * 2] ?? 0) ^ 1);
      expect(isSignedBy(key, message, altered)).toBe(false);
    }
  });

  it('a signature of the wrong length is invalid', () => {
    const [first] = vectors;
    const key = toVerifyingKey(fromHex(first?.publicKey ?? ''));
    expect(isSignedBy(key, new Uint8Array(0), fromHex(first?.signature ?? '').subarray(1))).toBe(false);
  });

  it('R counts as having small order if the first half of the signature is the identity, whatever follows', () => {
    const identity = [1, ...new Uint8Array(31)];
    expect(hasSmallOrderR(Uint8Array.of(...identity, ...new Uint8Array(32).fill(7)))).toBe(true);
    expect(hasSmallOrderR(Uint8Array.of(...new Uint8Array(32).fill(7), ...identity))).toBe(false);
  });
});

// The rule that every verifier of the service follows, pinned by vectors: what node:crypto takes under a key that is taken.
import { createPublicKey, verify } from 'node:crypto';
import { verifyAsync } from '@noble/ed25519';
import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/ed25519.json' with { type: 'json' };
import { weaknessOf } from '../../src/crypto/did-key.ts';
import { fromHex } from '../../src/vocabulary/hex.ts';

const cases = vectors.map((vector) => ({
  ...vector,
  publicKey: fromHex(vector.publicKey),
  message: fromHex(vector.message),
  signature: fromHex(vector.signature),
}));

describe('an Ed25519 signature', () => {
  it.each(cases)('is judged by node:crypto: $comment', ({ publicKey, message, signature, isValid }) => {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') };
    expect(weaknessOf(publicKey)).toBeUndefined();
    expect(verify(null, message, createPublicKey({ key: jwk, format: 'jwk' }), signature)).toBe(isValid);
  });

  it.each(cases.filter(({ isValid }) => isValid))('is taken by @noble/ed25519 too: $comment', async (vector) => {
    const { publicKey, message, signature } = vector;
    expect(await verifyAsync(signature, message, publicKey, { zip215: false })).toBe(true);
  });
});

import { expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/ed25519.json' with { type: 'json' };
import { isSignature } from '../../src/client/verify.ts';
import { fromHex } from '../../src/vocabulary/values.ts';

it.each(vectors)('the client verifies signatures by the service’s rule: $comment', ({ isValid, ...vector }) => {
  const [publicKey, message, signature] = [vector.publicKey, vector.message, vector.signature].map(fromHex);
  expect(isSignature(publicKey as Uint8Array, message as Uint8Array, signature as Uint8Array)).toBe(isValid);
});

// The auditor's own arithmetic against the service's: the same answers from other code.
import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import vectors from '../../fixtures/vectors/ed25519.json' with { type: 'json' };
import { isSignedBy, toVerifyingKey } from '../../src/audit/ed25519.ts';
import { leafOf } from '../../src/audit/hashes.ts';
import { MovesRoot } from '../../src/audit/moves-root.ts';
import { weaknessOf } from '../../src/crypto/did-key.ts';
import { appendLeaf, EMPTY_TREE, leafHash, rootOf } from '../../src/crypto/merkle.ts';
import { fromHex, toHex } from '../../src/vocabulary/hex.ts';
import { edgeSignatures } from '../verifier/edge-signatures.ts';

describe('a signature', () => {
  test('is right for the auditor exactly when node:crypto says so, under every key that is let in', () => {
    const cases = edgeSignatures().filter(({ publicKey }) => weaknessOf(publicKey) === undefined);
    expect(cases.length).toBeGreaterThan(500);
    for (const { title, publicKey, message, signature } of cases) {
      const x = Buffer.from(publicKey).toString('base64url');
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      const expected = verify(null, message, key, signature);
      expect(isSignedBy(toVerifyingKey(publicKey), message, signature), title).toBe(expected);
    }
  });

  test.each(vectors)('$comment', ({ publicKey, message, signature, isValid }) => {
    const isRight = isSignedBy(toVerifyingKey(fromHex(publicKey)), fromHex(message), fromHex(signature));
    expect(isRight).toBe(isValid);
  });

  test('of a wrong length is wrong', () => {
    const [first] = vectors;
    const key = toVerifyingKey(fromHex(first?.publicKey ?? ''));
    expect(isSignedBy(key, new Uint8Array(0), fromHex(first?.signature ?? '').subarray(1))).toBe(false);
  });
});

describe('the root of the moves', () => {
  const BLOCK = 16_384;

  test('is the accumulator’s at every size, also where a block of leaves ends', () => {
    const compared = new Set([1, 2, 3, 5, 64, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 77]);
    const moves = new MovesRoot();
    let tree = EMPTY_TREE;
    for (let size = 1; size <= Math.max(...compared); size++) {
      const leaf = leafHash(Buffer.from(String(size)));
      moves.push(leaf);
      tree = appendLeaf(tree, leaf).tree;
      if (!compared.has(size)) continue;
      expect(moves.size).toBe(size);
      expect(toHex(moves.root() as Uint8Array), `${size} leaves`).toBe(toHex(rootOf(tree)));
    }
  });

  test('is of leaves that both hash alike', () => {
    const line = Buffer.from('{"eventId":1}');
    expect(leafOf(line)).toEqual(leafHash(line));
  });
});

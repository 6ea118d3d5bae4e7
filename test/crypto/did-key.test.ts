import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import dids from '../../fixtures/vectors/did-key.json' with { type: 'json' };
import publicKeys from '../../fixtures/vectors/public-keys.json' with { type: 'json' };
import { parseDid, toDid, weaknessOf } from '../../src/crypto/did-key.ts';
import { thumbprintOf } from '../../src/crypto/jwk.ts';
import { isSignedBy, toVerifyingKey } from '../../src/crypto/verify.ts';
import { fromHex } from '../../src/vocabulary/values.ts';

const KEY = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe('a DID', () => {
  it.each(dids.valid)('a DID represents $comment', ({ publicKey, did }) => {
    expect(toDid(fromHex(publicKey))).toBe(did);
    expect(parseDid(did)).toEqual(fromHex(publicKey));
  });

  it('the DID of any 32 bytes parses to these bytes', () => {
    fc.assert(
      fc.property(KEY, (key) => {
        expect(parseDid(toDid(key))).toEqual(key);
      }),
    );
  });

  it('a key has only one DID that parses', () => {
    const digit = fc.constantFrom(...'123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz');
    const neighbour = fc.tuple(KEY, fc.nat({ max: 55 }), digit);
    fc.assert(
      fc.property(neighbour, ([key, at, character]) => {
        const text = toDid(key);
        const changed = text.slice(0, at) + character + text.slice(at + 1);
        const parsed = parseDid(changed);
        if (parsed !== undefined) expect(toDid(parsed)).toBe(changed);
      }),
    );
  });

  it.each(dids.refused)('a DID is rejected: $comment', ({ did }) => {
    expect(parseDid(did)).toBeUndefined();
  });

  it.each([0, 31, 33])('a key of %i bytes has no DID', (length) => {
    expect(() => toDid(new Uint8Array(length))).toThrow(new RangeError('an Ed25519 public key has 32 bytes'));
  });
});

describe('a public key', () => {
  const good = publicKeys.filter(({ weakness }) => weakness === null);
  const weak = publicKeys.filter(({ weakness }) => weakness !== null);

  it.each(good)('a public key is accepted: $comment', ({ publicKey }) => {
    expect(weaknessOf(fromHex(publicKey))).toBeUndefined();
  });

  it.each(weak)('a public key is rejected: $comment', ({ publicKey, weakness }) => {
    expect(weaknessOf(fromHex(publicKey))).toContain(weakness);
  });

  it('the thumbprint of a public key is that of RFC 8037, appendix A.3', () => {
    const publicKey = fromHex('0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
    expect(thumbprintOf(publicKey)).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
  });

  it('a public key for which one signature would be valid for every message is rejected', () => {
    const identity = Uint8Array.of(1, ...new Uint8Array(31));
    const key = toVerifyingKey(identity);
    const signature = Uint8Array.of(...identity, ...new Uint8Array(32));
    for (const message of ['any message', 'another']) {
      expect(isSignedBy(key, Buffer.from(message), signature)).toBe(true);
    }
    expect(weaknessOf(identity)).toContain('small order');
  });
});

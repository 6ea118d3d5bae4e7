// The auditor trusts a fast verifier's acceptances, except for a checked sample, and never its rejections.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { checkedVerify, createWebVerify, type FastVerify } from '../../src/audit/line/verify.ts';
import { parseDid } from '../../src/crypto/did-key.ts';
import { toVerifyingKey } from '../../src/crypto/verify.ts';
import { Signer } from '../kit/signer.ts';

const signer = new Signer(Buffer.alloc(32, 9));
const key = toVerifyingKey(parseDid(signer.did) as Uint8Array);
const message = new TextEncoder().encode('message');
const signature = new Uint8Array(Buffer.from(signer.signText('message'), 'base64'));
const forged = signature.with(40, (signature[40] ?? 0) ^ 1);

const accepting: FastVerify = async () => true;
const refusing: FastVerify = async () => false;
const failing: FastVerify = async () => {
  throw new Error('Ed25519 is not supported');
};

afterEach(() => {
  vi.restoreAllMocks();
});

function draw(chance: number): void {
  vi.spyOn(Math, 'random').mockReturnValue(chance);
}

describe('a faulty verifier', () => {
  test.each([
    ['refuses everything', refusing],
    ['fails', failing],
  ])('a verifier that %s is overruled', async (_what, fast) => {
    draw(0.5);
    expect(await checkedVerify(fast)(key, message, signature)).toBe(true);
    expect(await checkedVerify(fast)(key, message, forged)).toBe(false);
  });

  test('a verifier that accepts everything is caught by the sample', async () => {
    const verify = checkedVerify(accepting);
    draw(0.0099);
    expect([await verify(key, message, forged), await verify(key, message, signature)]).toEqual([false, true]);
    draw(0.01);
    expect(await verify(key, message, forged)).toBe(true);
  });
});

test('WebCrypto accepts a valid signature and rejects a forged one', async () => {
  const verify = createWebVerify();
  expect([await verify(key.bytes, message, signature), await verify(key.bytes, message, forged)]).toEqual([
    true,
    false,
  ]);
});

import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashes, verify as nobleVerify } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { weaknessOf } from '../../src/crypto/did-key.ts';
import { createVerifier, type SignatureVerifierPool, type VerifierOptions } from '../../src/verifier/verifier.ts';
import { type EdgeSignature, edgeSignatures } from './edge-signatures.ts';

hashes.sha512 = sha512;

const pools: SignatureVerifierPool[] = [];
const folder = mkdtempSync(join(tmpdir(), 'verifier-'));

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('the rule', () => {
  const cases = edgeSignatures();
  const accepted = cases.filter(nodeAccepts);

  test('edge cases of every kind are in the set', () => {
    const sound = cases.filter(({ publicKey }) => weaknessOf(publicKey) === undefined);
    expect(sound.filter(nodeAccepts).length).toBeGreaterThan(50);
    expect(sound.filter((each) => !nodeAccepts(each) && nobleAccepts(each)).length).toBeGreaterThan(50);
  });

  test.each([
    ['libsodium on a thread', { threads: 1 }],
    ['libsodium on several threads', { threads: 3 }],
    ['node:crypto alone', { threads: 0 }],
  ])('is that of node:crypto with %s', async (_, options) => {
    const pool = await readyPool(options);
    const answers = await Promise.all(cases.map((each) => pool.verify(each.publicKey, each.message, each.signature)));
    expect(titlesWhere(cases, answers)).toEqual(accepted.map(({ title }) => title));
  });

  test('holds for every bit of a signature', async () => {
    const pool = await readyPool({});
    const { publicKey, message, signature } = signed('a message');
    const flipped = Array.from({ length: 512 }, (_, bit) => flip(signature, bit));
    const answers = await Promise.all(flipped.map((each) => pool.verify(publicKey, message, each)));
    expect(answers).toEqual(flipped.map(() => false));
  });

  test('accepts nothing that noble refuses, under keys that pass the key check', () => {
    const sound = accepted.filter(({ publicKey }) => weaknessOf(publicKey) === undefined);
    expect(sound.filter((each) => !nobleAccepts(each))).toEqual([]);
  });

  test('refuses keys and signatures of a wrong length', async () => {
    const pool = await readyPool({});
    const { publicKey, message, signature } = signed('a message');
    expect(await pool.verify(publicKey.subarray(1), message, signature)).toBe(false);
    expect(await pool.verify(publicKey, message, signature.subarray(1))).toBe(false);
    expect(await pool.verify(publicKey, message, Buffer.concat([signature, signature]))).toBe(false);
  });
});

describe('many at once', () => {
  test('each gets its own answer, whatever the length of its message', async () => {
    const pool = await readyPool({});
    const questions = Array.from({ length: 300 }, (_, index) => signed('x'.repeat(index * 7)));
    const answers = questions.map(({ publicKey, message, signature }, index) =>
      pool.verify(publicKey, message, index % 3 === 0 ? flip(signature, index) : signature),
    );
    expect(await Promise.all(answers)).toEqual(questions.map((_, index) => index % 3 !== 0));
  });

  test('more than pendingMax are refused until some are answered', async () => {
    const pool = await readyPool({ pendingMax: 2 });
    const { publicKey, message, signature } = signed('a message');
    const first = [pool.verify(publicKey, message, signature), pool.verify(publicKey, message, signature)];
    await expect(pool.verify(publicKey, message, signature)).rejects.toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
    expect(await Promise.all(first)).toEqual([true, true]);
    expect(await pool.verify(publicKey, message, signature)).toBe(true);
  });

  test('more keys than are kept are no matter', async () => {
    const pool = createPool({ threads: 0, keysMax: 2 });
    const questions = Array.from({ length: 20 }, (_, index) => signed(`message ${index}`));
    const answers = questions.map((each) => pool.verify(each.publicKey, each.message, each.signature));
    expect(await Promise.all(answers)).toEqual(questions.map(() => true));
  });
});

describe('without a working libsodium', () => {
  const { publicKey, message, signature } = signed('a message');

  test.each([
    ['a binding that is missing', join(folder, 'missing.cjs')],
    ['a binding that does not load', binding('unloadable.cjs', `throw new Error('no such platform');`)],
  ])('%s: node:crypto answers and nothing is started again', async (_, sodiumPath) => {
    const onThreadLost = vi.fn();
    const pool = createPool({ sodiumPath, onThreadLost });
    expect(await pool.verify(publicKey, message, signature)).toBe(true);
    await vi.waitFor(() => expect(onThreadLost).toHaveBeenCalled());
    expect(await pool.verify(publicKey, message, flip(signature, 300))).toBe(false);
    expect(pool.readyThreads()).toBe(0);
    expect(onThreadLost).toHaveBeenCalledTimes(1);
  });

  test('a thread that dies over its work: node:crypto answers and another thread is started', async () => {
    const sodiumPath = binding('mortal.cjs', 'exports.crypto_sign_verify_detached = () => process.exit(1);');
    const onThreadLost = vi.fn();
    const pool = await readyPool({ sodiumPath, onThreadLost });
    const answers = [signature, flip(signature, 1), signature].map((each) => pool.verify(publicKey, message, each));
    expect(await Promise.all(answers)).toEqual([true, false, true]);
    expect(onThreadLost).toHaveBeenCalledTimes(1);
    await vi.waitFor(() => expect(pool.readyThreads()).toBe(1));
  });

  test('a thread that throws over its work: node:crypto answers', async () => {
    const sodiumPath = binding(
      'thrower.cjs',
      `exports.crypto_sign_verify_detached = () => { throw new Error('odd'); };`,
    );
    const onThreadLost = vi.fn();
    const pool = await readyPool({ sodiumPath, onThreadLost });
    expect(await pool.verify(publicKey, message, signature)).toBe(true);
    expect(onThreadLost).toHaveBeenCalledWith('odd');
  });

  test('a binding that refuses everything has no last word', async () => {
    const pool = await readyPool({
      sodiumPath: binding('strict.cjs', 'exports.crypto_sign_verify_detached = () => false;'),
    });
    const answers = Array.from({ length: 40 }, (_, index) =>
      pool.verify(publicKey, message, index % 2 === 0 ? signature : flip(signature, index)),
    );
    expect(await Promise.all(answers)).toEqual(answers.map((_, index) => index % 2 === 0));
  });
});

describe('after close', () => {
  test('what was asked before is answered, what is asked later is refused', async () => {
    const pool = await readyPool({});
    const { publicKey, message, signature } = signed('a message');
    const before = Array.from({ length: 100 }, () => pool.verify(publicKey, message, signature));
    await new Promise(setImmediate);
    await pool.close();
    await expect(pool.verify(publicKey, message, signature)).rejects.toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
    expect(await Promise.all(before)).toEqual(before.map(() => true));
    expect(pool.readyThreads()).toBe(0);
  });
});

function createPool(options: VerifierOptions): SignatureVerifierPool {
  const pool = createVerifier(options);
  pools.push(pool);
  return pool;
}

async function readyPool(options: VerifierOptions): Promise<SignatureVerifierPool> {
  const pool = createPool(options);
  await vi.waitFor(() => expect(pool.readyThreads()).toBe(options.threads ?? 1), { timeout: 10_000 });
  return pool;
}

function binding(name: string, program: string): string {
  const path = join(folder, name);
  writeFileSync(path, program);
  return path;
}

function signed(text: string): EdgeSignature {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const message = Buffer.from(text);
  return { title: text, publicKey: rawKey(publicKey), message, signature: sign(null, message, privateKey) };
}

function rawKey(key: KeyObject): Uint8Array {
  return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url');
}

function flip(bytes: Uint8Array, bit: number): Uint8Array {
  return bytes.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
}

function nodeAccepts({ publicKey, message, signature }: EdgeSignature): boolean {
  const x = Buffer.from(publicKey).toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  return verify(null, message, key, signature);
}

function nobleAccepts({ publicKey, message, signature }: EdgeSignature): boolean {
  return nobleVerify(signature, message, publicKey);
}

function titlesWhere(cases: readonly EdgeSignature[], answers: readonly boolean[]): readonly string[] {
  return cases.filter((_, index) => answers[index]).map(({ title }) => title);
}

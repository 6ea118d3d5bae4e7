import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashes, sign as nobleSign, verify as nobleVerify } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { hasSmallOrderR, isSignedBy, toVerifyingKey, type VerifyCaller } from '../../src/crypto/verify.ts';
import { createVerifier, type SignatureVerifierPool, type VerifierOptions } from '../../src/verifier/verifier.ts';
import { eventually } from '../kit/until.ts';
import { type EdgeSignature, edgeSignatures, signatureWithIdentityAsR, smallOrderPoints } from './edge-signatures.ts';

hashes.sha512 = sha512;

const CALLER: VerifyCaller = { network: '192.0.2.1', did: 'did:key:z6MkHonest' };
const FLOODER: VerifyCaller = { network: '192.0.2.2', did: 'did:key:z6MkFlooder' };
/** The number of jobs in flight in a pool with one thread. */
const IN_FLIGHT_MAX = 128;

const pools: SignatureVerifierPool[] = [];
const folder = mkdtempSync(join(tmpdir(), 'verifier-'));

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('the rule', () => {
  const cases = edgeSignatures();
  const accepted = cases.filter(({ isValid }) => isValid).map(({ title }) => title);
  const acceptedByNoble = new Set(cases.filter(nobleAccepts));

  test('the edge cases cover every kind', () => {
    expect(accepted.length).toBeGreaterThan(100);
    expect(cases.filter(({ isValid, signature }) => isValid && hasSmallOrderR(signature)).length).toBeGreaterThan(50);
    expect(cases.filter((each) => !each.isValid && acceptedByNoble.has(each)).length).toBeGreaterThan(50);
  });

  test('the rule is the verification equation', () => {
    const judged = cases.filter((each) => isSignedBy(toVerifyingKey(each.publicKey), each.message, each.signature));
    expect(judged.map(({ title }) => title)).toEqual(accepted);
  });

  test.each([
    ['libsodium on a thread', { threads: 1 }],
    ['libsodium on several threads', { threads: 3 }],
    ['node:crypto alone', { threads: 0 }],
  ])('the verifier follows the rule with %s', async (_, options) => {
    const pool = await readyPool({ ...options, fallbackPauseMillis: 0 });
    const titles: string[] = [];
    for (const { title, publicKey, message, signature } of cases)
      if (await pool.verify(publicKey, message, signature, CALLER)) titles.push(title);
    expect(titles).toEqual(accepted);
  });

  test.each([
    ['libsodium', { threads: 1 }],
    ['node:crypto', { threads: 0 }],
  ])('service and auditor both accept R = identity, with %s', async (_, options) => {
    const { publicKey, message, signature } = signatureWithIdentityAsR(Buffer.from('a message'));
    const pool = await readyPool(options);
    expect(isSignedBy(toVerifyingKey(publicKey), message, signature)).toBe(true);
    expect(await pool.verify(publicKey, message, signature, CALLER)).toBe(true);
    expect(await pool.verify(publicKey, Buffer.from('another'), signature, CALLER)).toBe(false);
  });

  test('the verifier uses the fallback for exactly the eight points of small order', () => {
    const signatures = smallOrderPoints().map((point) => Buffer.concat([point, new Uint8Array(32)]));
    expect(signatures.map((each) => hasSmallOrderR(each))).toEqual(signatures.map(() => true));
    expect(new Set(signatures.map((each) => each.toString('hex'))).size).toBe(8);
    expect(hasSmallOrderR(signed('a message').signature)).toBe(false);
  });

  test('flipping any bit of a signature makes it invalid', async () => {
    const pool = await readyPool({});
    const { publicKey, message, signature } = signed('a message');
    const flipped = Array.from({ length: 512 }, (_, bit) => flip(signature, bit));
    const answers = await Promise.all(flipped.map((each) => pool.verify(publicKey, message, each, CALLER)));
    expect(answers).toEqual(flipped.map(() => false));
  });

  test('the verifier accepts no signature that noble rejects', () => {
    expect(cases.filter((each) => each.isValid && !acceptedByNoble.has(each))).toEqual([]);
  });

  test('the verifier rejects keys and signatures of the wrong length', async () => {
    const pool = await readyPool({});
    const { publicKey, message, signature } = signed('a message');
    expect(await pool.verify(publicKey.subarray(1), message, signature, CALLER)).toBe(false);
    expect(await pool.verify(publicKey, message, signature.subarray(1), CALLER)).toBe(false);
    expect(await pool.verify(publicKey, message, Buffer.concat([signature, signature]), CALLER)).toBe(false);
  });
});

describe('concurrent signatures', () => {
  test('concurrent signatures each get their own result, with messages of any length', async () => {
    const pool = await readyPool({});
    const jobs = Array.from({ length: 300 }, (_, index) => signed('x'.repeat(index * 7)));
    const answers = jobs.map(({ publicKey, message, signature }, index) =>
      pool.verify(publicKey, message, index % 3 === 0 ? flip(signature, index) : signature, CALLER),
    );
    expect(await Promise.all(answers)).toEqual(jobs.map((_, index) => index % 3 !== 0));
  });

  test('signatures beyond pendingMax are rejected until some have results', async () => {
    const pool = await readyPool({ pendingMax: 2 });
    const { publicKey, message, signature } = signed('a message');
    const first = [
      pool.verify(publicKey, message, signature, CALLER),
      pool.verify(publicKey, message, signature, CALLER),
    ];
    await expect(pool.verify(publicKey, message, signature, CALLER)).rejects.toMatchObject({
      code: 'FORUM_ERR_UNAVAILABLE',
    });
    expect(await Promise.all(first)).toEqual([true, true]);
    expect(await pool.verify(publicKey, message, signature, CALLER)).toBe(true);
  });

  test('concurrent signatures may have more keys than the cache', async () => {
    const pool = createPool({ threads: 0, keysMax: 2 });
    const jobs = Array.from({ length: 20 }, (_, index) => signed(`message ${index}`));
    const answers = jobs.map((each) => pool.verify(each.publicKey, each.message, each.signature, CALLER));
    expect(await Promise.all(answers)).toEqual(jobs.map(() => true));
  });
});

test('node:crypto verifies the first threadsAfter signatures, and then threads start', async () => {
  const pool = createPool({ threads: 1, threadsAfter: 3 });
  const { publicKey, message, signature } = signed('a message');
  const verify = () => pool.verify(publicKey, message, signature, CALLER);
  expect([await verify(), await verify()]).toEqual([true, true]);
  await expect(eventually(() => expect(pool.readyThreads()).toBe(1), 500)).rejects.toThrow();
  expect(await verify()).toBe(true);
  await eventually(() => expect(pool.readyThreads()).toBe(1), 20_000);
  expect(await verify()).toBe(true);
});

describe('without a working libsodium', () => {
  const { publicKey, message, signature } = signed('a message');

  test.each([
    ['a missing binding', join(folder, 'missing.cjs')],
    ['a binding that does not load', binding('unloadable.cjs', `throw new Error('unsupported platform');`)],
  ])('with %s, node:crypto verifies and no thread is started again', async (_, sodiumPath) => {
    const onThreadLost = vi.fn();
    const pool = createPool({ sodiumPath, onThreadLost });
    expect(await pool.verify(publicKey, message, signature, CALLER)).toBe(true);
    await eventually(() => expect(onThreadLost).toHaveBeenCalled(), 20_000);
    expect(await pool.verify(publicKey, message, flip(signature, 300), CALLER)).toBe(false);
    expect(pool.readyThreads()).toBe(0);
    expect(onThreadLost).toHaveBeenCalledTimes(1);
  });

  test('if a thread dies at work, node:crypto verifies and another thread starts', async () => {
    const sodiumPath = binding('mortal.cjs', 'exports.crypto_sign_verify_detached = () => process.exit(1);');
    const onThreadLost = vi.fn();
    const pool = await readyPool({ sodiumPath, onThreadLost });
    // These are more than one batch.
    const signatures = Array.from({ length: 60 }, (_, index) => (index % 3 === 1 ? flip(signature, index) : signature));
    const answers = signatures.map((each) => pool.verify(publicKey, message, each, CALLER));
    expect(await Promise.all(answers)).toEqual(signatures.map((each) => each === signature));
    expect(onThreadLost).toHaveBeenCalledTimes(1);
    await eventually(() => expect(pool.readyThreads()).toBe(1), 20_000);
  });

  test('if a thread throws at work, node:crypto verifies', async () => {
    const sodiumPath = binding(
      'thrower.cjs',
      `exports.crypto_sign_verify_detached = () => { throw new Error('odd'); };`,
    );
    const onThreadLost = vi.fn();
    const pool = await readyPool({ sodiumPath, onThreadLost });
    expect(await pool.verify(publicKey, message, signature, CALLER)).toBe(true);
    expect(onThreadLost).toHaveBeenCalledWith('odd');
  });
});

describe('signing', () => {
  const seeds = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(8)];
  const messages = Array.from({ length: 40 }, (_, index) => Buffer.from('m'.repeat(index)));
  const dying = 'exports.crypto_sign_seed_keypair = () => {}; exports.crypto_sign_detached = () => process.exit(1);';

  test.each([
    ['by libsodium', { threads: 1 }],
    ['by node:crypto', { threads: 0 }],
    ['by node:crypto once a thread dies over its work', { threads: 1, sodiumPath: binding('dying.cjs', dying) }],
  ])('the pool signs %s with the key of each call, in the order of the calls', async (_, options) => {
    const pool = await readyPool(options);
    const jobs = messages.map((message, index) => [seeds[index % 2] as Uint8Array, message] as const);
    const signatures = await Promise.all(jobs.map(([seed, message]) => pool.sign(seed, message)));
    expect(signatures.map((each) => Buffer.from(each))).toEqual(
      jobs.map(([seed, message]) => Buffer.from(nobleSign(message, seed))),
    );
  });
});

describe('a flood of wrong signatures with R of small order', () => {
  const right = signatureWithIdentityAsR(Buffer.from('a message'));
  const wrong = Buffer.from('another message');

  test('wrong signatures with R of small order are rejected beyond a limit, and delay no other signature', async () => {
    const pool = await readyPool({});
    let answered = 0;
    const attack = () => pool.verify(right.publicKey, wrong, right.signature, CALLER);
    const flood = Promise.allSettled(
      Array.from({ length: 200 }, () =>
        attack().then((isValid) => {
          answered++;
          return isValid;
        }),
      ),
    );
    const { publicKey, message, signature } = signed('a message');
    expect(await pool.verify(publicKey, message, signature, CALLER)).toBe(true);
    const before = answered;
    const codes = (await flood).map((each) => (each.status === 'fulfilled' ? String(each.value) : each.reason.code));
    expect(new Set(codes)).toEqual(new Set(['false', 'FORUM_ERR_UNAVAILABLE']));
    // The fallback verifier was slower.
    expect(answered).toBeGreaterThan(before + 1);
    expect(await pool.verify(right.publicKey, right.message, right.signature, CALLER)).toBe(true);
  });
});

describe('a flood of wrong signatures', () => {
  const { publicKey, message, signature } = signed('a message');
  const wrong = flip(signature, 300);

  test.each([
    ['libsodium', 1],
    ['node:crypto', 0],
  ])('a flood of wrong signatures delays another caller by at most the jobs in flight, with %s', async (_, threads) => {
    const size = 20 * IN_FLIGHT_MAX;
    const queueLimits = { perKeyMax: size, perNetworkMax: size };
    const pool = await readyPool({ threads, queueLimits });
    let answered = 0;
    const flood = Array.from({ length: size }, () =>
      pool.verify(publicKey, message, wrong, FLOODER).then((isValid) => {
        answered++;
        return isValid;
      }),
    );
    const sameNetwork = pool.verify(publicKey, message, signature, { ...FLOODER, did: 'did:key:z6MkNeighbour' });
    expect(await pool.verify(publicKey, message, signature, CALLER)).toBe(true);
    expect(answered).toBeLessThan(2 * IN_FLIGHT_MAX);
    expect(await sameNetwork).toBe(true);
    expect(answered).toBeLessThan(2 * IN_FLIGHT_MAX);
    expect(new Set(await Promise.all(flood))).toEqual(new Set([false]));
  });

  test('a flood of wrong signatures is rejected beyond its share, with Retry-After, while others are accepted', async () => {
    const pool = createPool({ threads: 0, queueLimits: { perKeyMax: 10 } });
    const flood = Array.from({ length: IN_FLIGHT_MAX + 10 }, () => pool.verify(publicKey, message, wrong, FLOODER));
    await expect(pool.verify(publicKey, message, signature, FLOODER)).rejects.toMatchObject({
      code: 'FORUM_ERR_UNAVAILABLE',
      retryAfterSeconds: 1,
    });
    expect(await pool.verify(publicKey, message, signature, CALLER)).toBe(true);
    expect(await Promise.all(flood)).toEqual(flood.map(() => false));
    expect(await pool.verify(publicKey, message, signature, FLOODER)).toBe(true);
  });
});

describe('a closed verifier', () => {
  test('after close, pending and waiting signatures get results, and later ones are rejected', async () => {
    const pool = await readyPool({});
    const { publicKey, message, signature } = signed('a message');
    const before = Array.from({ length: 2 * IN_FLIGHT_MAX }, () => pool.verify(publicKey, message, signature, CALLER));
    await new Promise(setImmediate);
    await pool.close();
    await expect(pool.verify(publicKey, message, signature, CALLER)).rejects.toMatchObject({
      code: 'FORUM_ERR_UNAVAILABLE',
    });
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
  await eventually(() => expect(pool.readyThreads()).toBe(options.threads ?? 1), 10_000);
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

function nobleAccepts({ publicKey, message, signature }: EdgeSignature): boolean {
  return nobleVerify(signature, message, publicKey);
}

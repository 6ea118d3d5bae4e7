import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { signatureKey } from '../../src/crypto/http-signature.ts';
import { SignatureFilter } from '../../src/log/signature-filter.ts';

const NOW = 1_800_000_000;
/** More signatures than both generations hold. */
const MANY = 300_000;

function keyOf(created: number): string {
  return signatureKey({ created, signature: randomBytes(64) });
}

it('the filter has no false negatives, however many signatures follow, and few false positives', () => {
  const filter = new SignatureFilter(0);
  const keys = Array.from({ length: MANY }, (_, index) => keyOf(NOW + Math.floor(index / 1_000)));
  for (const key of keys) filter.add(key);
  expect(keys.filter((key) => !filter.mayContain(key))).toEqual([]);
  const absentKeys = Array.from({ length: 10_000 }, () => keyOf(NOW + MANY / 1_000));
  expect(absentKeys.filter((key) => filter.mayContain(key)).length).toBeLessThan(200);
});

it('the filter never denies signatures that may predate it', () => {
  const filter = new SignatureFilter(NOW);
  expect(filter.mayContain(keyOf(NOW - 1))).toBe(true);
  expect(filter.mayContain(keyOf(NOW))).toBe(false);
  expect(filter.mayContain(keyOf(2 ** 32))).toBe(true);
});

it('a signature from the future does not hide the forgotten signatures of its generation', () => {
  const filter = new SignatureFilter(0);
  const keys = Array.from({ length: MANY }, (_, index) => keyOf(index === 0 ? NOW + 60 : NOW));
  for (const key of keys) filter.add(key);
  expect(filter.mayContain(keys[0] as string)).toBe(true);
  expect(keys.every((key) => filter.mayContain(key))).toBe(true);
});

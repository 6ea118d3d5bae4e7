import { describe, expect, it } from 'vitest';
import { requireFresh } from '../../src/moves/rules.ts';
import { START } from '../kit/clock.ts';
import { outcomeOf } from '../kit/given.ts';

const NOW = START / 1000;
const AGES = { maxAgeSeconds: 300, maxSkewSeconds: 60 };

function freshness(created: number, expires?: number, now = START) {
  const times = expires === undefined ? { created } : { created, expires };
  return outcomeOf(() => requireFresh(times, now, AGES));
}

describe('the age of a signature', () => {
  it.each([NOW, NOW - 300, NOW + 60])('accepts created at %i, now or at a limit', (created) => {
    expect(freshness(created)).toBeUndefined();
  });

  it.each([
    ['too old', NOW - 301, undefined, 'created is 301 s old, at most 300 s'],
    ['too far ahead', NOW + 61, undefined, 'created is 61 s ahead, at most 60 s'],
    ['expired', NOW, NOW, 'the signature has expired'],
  ])('rejects one that is %s, telling the service time', (_what, created, expires, reason) => {
    const detail = expect.stringMatching(`^age: ${reason}.*service time 2030-01-01T00:00:00.000Z`);
    expect(freshness(created, expires)).toEqual({ code: 'FORUM_ERR_SIGNATURE', detail });
  });

  it.each([
    ['old', NOW - 300, START + 1, '300.001 s old, at most 300 s'],
    ['ahead', NOW + 60, START - 1, '60.001 s ahead, at most 60 s'],
  ])('rejects one that is a millisecond too %s, and says so', (_what, created, now, reason) => {
    const detail = expect.stringContaining(reason);
    expect(freshness(created, undefined, now)).toEqual({ code: 'FORUM_ERR_SIGNATURE', detail });
  });

  it('accepts an expiry that is still ahead', () => {
    expect(freshness(NOW, NOW + 1)).toBeUndefined();
  });
});

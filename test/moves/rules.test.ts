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
  it.each([NOW, NOW - 300, NOW + 60])('a signature created at %i (now or at a limit) is accepted', (created) => {
    expect(freshness(created)).toBeUndefined();
  });

  it.each([
    ['too old', NOW - 301, undefined, 'created is 301 s old, but at most 300 s'],
    ['too far ahead', NOW + 61, undefined, 'created is 61 s ahead, but at most 60 s'],
    ['expired', NOW, NOW, 'the signature has expired'],
  ])('a signature that is %s is rejected, and the error has the service time', (_what, created, expires, reason) => {
    const detail = expect.stringMatching(`^age: ${reason}.*service time 2030-01-01T00:00:00.000Z`);
    expect(freshness(created, expires)).toEqual({ code: 'FORUM_ERR_SIGNATURE', detail });
  });

  it.each([
    ['old', NOW - 300, START + 1, '300.001 s old, but at most 300 s'],
    ['ahead', NOW + 60, START - 1, '60.001 s ahead, but at most 60 s'],
  ])('a signature that is a millisecond too %s is rejected, and the error says so', (_what, created, now, reason) => {
    const detail = expect.stringContaining(reason);
    expect(freshness(created, undefined, now)).toEqual({ code: 'FORUM_ERR_SIGNATURE', detail });
  });

  it('a signature that has not yet expired is accepted', () => {
    expect(freshness(NOW, NOW + 1)).toBeUndefined();
  });
});

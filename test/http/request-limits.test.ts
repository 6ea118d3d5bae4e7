// Token buckets, with a clock that the test moves.
import { describe, expect, it } from 'vitest';
import { RateLimit } from '../../src/http/request-limits.ts';
import { rateError } from '../../src/vocabulary/errors.ts';

function limitOf(perSecond: number, burst: number, callersMax?: number) {
  let now = 0;
  const limit = new RateLimit({ perSecond, burst }, () => now, callersMax);
  const advance = (millis: number) => {
    now += millis;
  };
  const takes = (caller: string, count: number) => Array.from({ length: count }, () => limit.take(caller));
  return { limit, advance, takes };
}

describe('a token bucket', () => {
  it('a token bucket allows the burst at once, then returns the time to wait', () => {
    const { takes } = limitOf(10, 3);
    expect(takes('a', 5)).toEqual([0, 0, 0, 100, 100]);
  });

  it('a token bucket adds one token per interval, up to the burst', () => {
    const { takes, advance } = limitOf(10, 3);
    takes('a', 3);
    advance(100);
    expect(takes('a', 2)).toEqual([0, 100]);
    advance(60_000);
    expect(takes('a', 4)).toEqual([0, 0, 0, 100]);
  });

  it('a token bucket accepts a returned token', () => {
    const { limit, takes } = limitOf(10, 3);
    limit.refund('a');
    takes('a', 3);
    limit.refund('a');
    expect(takes('a', 2)).toEqual([0, 100]);
  });

  it('a token bucket is separate for each caller', () => {
    const { takes } = limitOf(10, 1);
    expect([...takes('a', 2), ...takes('b', 2)]).toEqual([0, 100, 0, 100]);
  });

  it('a token bucket keeps an active caller while idle ones are evicted', () => {
    const { takes, advance } = limitOf(1, 10);
    for (let second = 0; second < 60; second++) {
      takes('a', 20);
      advance(1_000);
    }
    expect(takes('a', 2)).toEqual([0, 1_000]);
  });

  it('a token bucket evicts idle callers, and keeps at most callersMax', () => {
    const { limit, takes, advance } = limitOf(1_000, 1_000, 100);
    for (let caller = 0; caller < 10_000; caller++) takes(`caller ${caller}`, 1);
    expect(limit.callers).toBeLessThanOrEqual(200);
    for (const _ of [1, 2]) {
      advance(1_000);
      takes('a', 1);
    }
    expect(limit.callers).toBe(2);
  });

  it('a token bucket keeps a debt until it is paid', () => {
    const { limit, takes, advance } = limitOf(1, 2);
    limit.charge('a', 60);
    for (let second = 0; second < 50; second++) {
      advance(1_000);
      takes('b', 1);
    }
    expect(limit.wait('a')).toBe(9_000);
    advance(9_000);
    expect(takes('a', 2)).toEqual([0, 1_000]);
  });

  it('a token bucket rejects with the number of seconds to wait', () => {
    const { limit, takes } = limitOf(0.1, 1);
    takes('a', 1);
    const error = rateError(limit.take('a'), 'this agent');
    expect(error).toMatchObject({ code: 'FORUM_ERR_RATE', retryAfterSeconds: 10 });
  });
});

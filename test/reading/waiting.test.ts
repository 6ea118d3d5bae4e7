import { describe, expect, it, vi } from 'vitest';
import { backoffMillis, pause, retryAfterMillis } from '../../src/reading/waiting.ts';

const DAY_MILLIS = 86_400_000;

describe('a pause', () => {
  it.each([
    ['of 300 days', 300 * DAY_MILLIS],
    ['without end', Number.POSITIVE_INFINITY],
    ['of an unknown time', Number.NaN],
  ])('a pause %s does not end at once', async (_, millis) => {
    vi.useFakeTimers();
    try {
      const stop = new AbortController();
      let isOver = false;
      const pausing = pause(millis, stop.signal).then(() => {
        isOver = true;
      });
      await vi.advanceTimersByTimeAsync(DAY_MILLIS);
      expect(isOver).toBe(false);
      stop.abort(new Error('enough'));
      await expect(pausing).rejects.toThrow('enough');
    } finally {
      vi.useRealTimers();
    }
  });

  it('a pause of 60 days ends after 60 days', async () => {
    vi.useFakeTimers();
    try {
      const begin = Date.now();
      const pausing = pause(60 * DAY_MILLIS).then(() => Date.now() - begin);
      await vi.advanceTimersByTimeAsync(61 * DAY_MILLIS);
      expect(await pausing).toBe(60 * DAY_MILLIS);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the backoff', () => {
  it('the backoff doubles with jitter, up to ten seconds', () => {
    for (const [failures, least, most] of [
      [0, 100, 200],
      [3, 800, 1_600],
      [50, 5_000, 10_000],
    ] as const) {
      const waits = Array.from({ length: 100 }, () => backoffMillis(failures));
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(least);
      expect(Math.max(...waits)).toBeLessThanOrEqual(most);
      expect(new Set(waits).size).toBeGreaterThan(50);
    }
  });

  it('the backoff is raised to the wait that the service asks for, up to a minute', () => {
    expect(backoffMillis(0, 0)).toBeGreaterThanOrEqual(100);
    expect(backoffMillis(0, 3_000)).toBeGreaterThan(3_000);
    expect(backoffMillis(0, 86_400_000)).toBeLessThanOrEqual(60_200);
    expect(new Set(Array.from({ length: 100 }, () => backoffMillis(0, 3_000))).size).toBeGreaterThan(50);
  });
});

describe('Retry-After', () => {
  const NOW = Date.UTC(2030, 0, 1);
  it.each<[string, Record<string, string>, number | undefined]>([
    ['in seconds', { 'Retry-After': '7' }, 7_000],
    ['with a date counts from the date of the response', dates(9, 4), 5_000],
    [
      'with a date counts from now if the response has no date',
      { 'Retry-After': new Date(NOW + 5_000).toUTCString() },
      5_000,
    ],
    ['with a date in the past means no wait', dates(4, 9), 0],
    ['with a date in another form is ignored', { 'Retry-After': '1 Jan 2099 00:00:00 GMT' }, undefined],
    ['that is empty is ignored', { 'Retry-After': '' }, undefined],
    ['that is negative is ignored', { 'Retry-After': '-1' }, undefined],
    ['with words is ignored', { 'Retry-After': 'soon' }, undefined],
    ['that is absent is ignored', {}, undefined],
  ])('Retry-After %s', (_, headers, millis) => {
    expect(retryAfterMillis(new Headers(headers), NOW)).toBe(millis);
  });

  function dates(retryAfter: number, date: number) {
    const text = (seconds: number) => new Date(NOW + seconds * 1_000).toUTCString();
    return { 'Retry-After': text(retryAfter), Date: text(date) };
  }
});

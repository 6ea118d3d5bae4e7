import { beforeEach, expect, test } from 'vitest';
import { RepeatedLog, type Repeats } from '../../src/diagnostics/repeated-log.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

let now: number;
let log: RepeatedLog;
let written: { readonly at: number; readonly reason: string; readonly repeats: Repeats }[];
beforeEach(() => {
  now = 0;
  log = new RepeatedLog(() => now);
  written = [];
});

test('a lasting condition is logged at once, then at growing intervals up to an hour', () => {
  for (; now <= 5 * HOUR; now += SECOND) report('full');
  expect(written.map(({ at }) => at / MINUTE)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
});

test('a repeated log line has the number of reports and the time since the first', () => {
  for (; now <= MINUTE; now += SECOND) report('full');
  expect(written.map(({ repeats }) => repeats)).toEqual([{}, { times: 61, seconds: 60 }]);
});

test('a new reason is logged at once, and known reasons when they are due', () => {
  for (const reason of ['full', 'full', 'slow', 'full', 'slow']) report(reason);
  expect(written.map(({ reason }) => reason)).toEqual(['full', 'slow']);
});

test('a reason that changes each time is logged at intervals', () => {
  for (; now < 10 * MINUTE; now += SECOND) report(`block ${now}`);
  expect(written.length).toBeLessThan(12);
});

test('each condition is logged at its own intervals', () => {
  report('full', 'disk');
  report('full', 'pipe');
  expect(written).toHaveLength(2);
});

test('the end of a condition is logged once, and only if the condition was logged', () => {
  expect(end()).toBe(false);
  report('full');
  expect(end()).toBe(true);
  expect(end()).toBe(false);
});

test('a condition that comes and goes is logged once a minute, each time with its end', () => {
  let ends = 0;
  for (; now < 10 * MINUTE; now += SECOND) {
    report('full');
    if (end()) ends++;
  }
  expect(written).toHaveLength(10);
  expect(ends).toBe(10);
});

test('a condition that lasted for hours and recurs is logged again within a minute', () => {
  for (; now <= 4 * HOUR + 3 * MINUTE; now += SECOND) report('full');
  end();
  for (; now <= 4 * HOUR + 4 * MINUTE; now += SECOND) report('full');
  expect(written.slice(-2).map(({ at }) => at / MINUTE)).toEqual([243, 244]);
});

function report(reason: string, name = 'disk'): void {
  log.report(name, reason, (repeats) => written.push({ at: now, reason, repeats }));
}

function end(): boolean {
  let isWritten = false;
  log.end('disk', () => {
    isWritten = true;
  });
  return isWritten;
}

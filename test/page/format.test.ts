import { expect, it } from 'vitest';
import { timeLeft } from '../../src/page/format.ts';

it.each([
  [0, '0 s'],
  [1, '1 s'],
  [59_000, '59 s'],
  [91_000, '1 m 31 s'],
  [3_599_001, '1 h 0 m'],
  [3_900_000, '1 h 5 m'],
  [90_000_000, '1 d 1 h'],
])('%i ms are shown as %s left', (millis, text) => {
  expect(timeLeft(1_000 + millis, 1_000)).toBe(text);
});

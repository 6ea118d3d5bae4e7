import { expect, test } from 'vitest';
import { progressText } from '../../src/audit/report/progress.ts';

test.each([
  [1_000, undefined, 0, '1,000 events'],
  [12_000, undefined, 2, '12,000 events, 6,000 a second'],
  [25_000, 0.25, 5, '[========                      ]  25 % 25,000 events, 5,000 a second, 15 s left'],
  [1_000, 0.01, 1, '[                              ]   1 % 1,000 events, 1,000 a second, 1 min 39 s left'],
  [50, 1, 0, '[==============================] 100 % 50 events, 0 s left'],
  [7, 1.02, 0.1, '[==============================] 100 % 7 events, 70 a second, 0 s left'],
])('progress after %i events, %s of the input, in %d s', (lines, share, seconds, text) => {
  expect(progressText(lines, share, seconds)).toBe(text);
});

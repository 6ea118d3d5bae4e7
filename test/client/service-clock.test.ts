import { describe, expect, it } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';

const AT = 1_000_000;
const SPAN = { sentAt: AT, receivedAt: AT + 10 };

describe('the service’s clock', () => {
  it.each([
    ['is the local one until told otherwise', [], 0],
    ['stays the local one within what an answer allows', [[-900, 99]], 0],
    ['is as little ahead as an answer allows', [[5_000, 5_999]], 4_990],
    ['is as little behind as an answer allows', [[-5_999, -5_000]], -5_000],
    [
      'is what two answers have in common',
      [
        [5_000, 5_999],
        [5_600, 6_599],
      ],
      5_590,
    ],
    [
      'is what the newest of two that contradict each other says',
      [
        [5_000, 5_999],
        [0, 999],
      ],
      0,
    ],
    [
      'is not what hearsay says against the service’s own word',
      [
        [5_000, 5_999],
        [0, 999, 1],
      ],
      4_990,
    ],
    ['takes in a bound on one side', [[2_000, Number.POSITIVE_INFINITY]], 1_990],
  ])('%s', (_, answers, ahead) => {
    const clock = new ServiceClock(() => AT);
    for (const [earliest = 0, latest = 0, isHearsay = 0] of answers) {
      clock.learn({ earliest: AT + earliest, latest: AT + latest, isHearsay: isHearsay === 1 }, SPAN);
    }
    expect(clock.now() - AT).toBe(ahead);
  });
});

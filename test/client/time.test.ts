import { describe, expect, it } from 'vitest';
import { ServiceClock } from '../../src/client/time.ts';
import { pause } from '../../src/reading/waiting.ts';

const AT = 1_000_000;
const SPAN = { sentAt: AT, receivedAt: AT + 10 };

describe('the service clock', () => {
  it.each([
    ['equals the local clock by default', [], 0],
    ['stays equal to the local clock within the bounds of a response', [[-900, 99]], 0],
    ['is as little ahead as a response allows', [[5_000, 5_999]], 4_990],
    ['is as little behind as a response allows', [[-5_999, -5_000]], -5_000],
    [
      'satisfies two responses',
      [
        [5_000, 5_999],
        [5_600, 6_599],
      ],
      5_590,
    ],
    [
      'follows the newer of two contradicting responses',
      [
        [5_000, 5_999],
        [0, 999],
      ],
      0,
    ],
    [
      'ignores a Date header that contradicts the service',
      [
        [5_000, 5_999],
        [0, 999, 1],
      ],
      4_990,
    ],
    ['accepts a bound on one side', [[2_000, Number.POSITIVE_INFINITY]], 1_990],
  ])('the service clock: %s', (_, responses, ahead) => {
    const clock = new ServiceClock({ now: () => AT, sleep: pause });
    for (const [earliest = 0, latest = 0, isFromHeader = 0] of responses) {
      clock.learn({ earliest: AT + earliest, latest: AT + latest, isFromHeader: isFromHeader === 1 }, SPAN);
    }
    expect(clock.now() - AT).toBe(ahead);
  });
});

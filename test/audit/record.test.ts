// Errors for lines that are not event records.
import { expect, test } from 'vitest';
import { readRecord } from '../../src/audit/line/record.ts';

test.each([
  ['', 'is empty'],
  ['hello', 'is not JSON'],
  ['[]', 'is not a JSON object'],
  [`${'['.repeat(33)}${']'.repeat(33)}`, 'is JSON that event records can’t contain: nesting is deeper than 32 levels'],
  ['{"a":1,"a":2}', 'is JSON that event records can’t contain: an object contains the same member name twice'],
  [
    '{"eventId":9007199254740992}',
    'is JSON that event records can’t contain: line.eventId: integers must be within ±(2^53 − 1)',
  ],
  ['{"type":"agent.registered"}', 'is of type agent.registered: it belongs to an agent’s account, not to a chamber'],
])('the error for the line %s', (text, problem) => {
  expect(readRecord({ bytes: Buffer.from(text), isEnded: true }).problem).toBe(problem);
});

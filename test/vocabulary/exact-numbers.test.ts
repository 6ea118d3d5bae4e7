// Numbers in a new request: a number that two readers might read differently is rejected, and the error names its member.
import { describe, expect, it } from 'vitest';
import { requireExactNumbers } from '../../src/vocabulary/json.ts';
import { outcomeOf } from '../kit/given.ts';

function check(text: string): unknown {
  return outcomeOf(() => requireExactNumbers(text, 'refinement'));
}

describe('a number', () => {
  it.each([
    '{"bps":1e3}',
    '{"bps":100.0}',
    '{"bps":1000e-1}',
    '{"bps":0.0}',
    '{"bps":0}',
    '{"refinement":0.000000000000000001234}',
    '{"bps":0e5}',
    '{"bps":-0}',
    '{"bps":0.5}',
    '{"bps":9007199254740991}',
    '{"bps":12345678901234567}',
    '{"refinement":{"x":1.0000000000000001}}',
    '{"refinement":[3.1415926535897931],"ideaId":1}',
    '{"comment":"1.00000000000000000000000001 and 1e-400 \\" 2.0000000000000001"}',
  ])('the numbers in %s are accepted', (text) => {
    expect(check(text)).toBeUndefined();
  });

  it.each([
    ['{"bps":1.0000000000000001}', 'bps: the number 1.0000000000000001 must be written as an exact integer'],
    ['{"a":{"bps":0.10000000000000001e1}}', 'a: the number 0.10000000000000001e1 must be'],
    ['{"bps":100.00000000000000001}', 'bps: the number 100.00000000000000001 has more than 17 significant digits'],
    ['{"refinement":{"x":0.12345678901234567890}}', 'refinement: the number 0.12345678901234567890 has more than 17'],
    ['{"refinement":1e-400}', 'refinement: the number 1e-400 is not 0 and would become 0'],
    ['{"x":-1e-400}', 'x: the number -1e-400 is not 0'],
    ['{"refinement":{"x":1},"bps":5.0000000000000001}', 'bps: the number 5.0000000000000001 must be'],
    ['[{"refinement":1.0000000000000001}]', 'body: the number 1.0000000000000001 must be'],
    ['{"refinement":[1],"bps":5.0000000000000001}', 'bps: the number 5.0000000000000001 must be'],
    [`[${'1'.repeat(50)}]`, `body: the number ${'1'.repeat(40)} has more than 17 significant digits`],
    ['[123456789012345678]', 'body: the number 123456789012345678 has more than 17 significant digits'],
  ])('a number in %s is rejected', (text, detail) => {
    expect(check(text)).toEqual({ code: 'FORUM_ERR_VALIDATION', detail: expect.stringContaining(detail) });
  });
});

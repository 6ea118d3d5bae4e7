import { describe, expect, it } from 'vitest';
import { suggestion } from '../../src/vocabulary/suggestion.ts';

const NAMES = ['phase', 'limit', 'before', 'from', 'to'];

describe('a suggestion', () => {
  it.each([
    ['phsae', 'phase'],
    ['Phase', 'phase'],
    ['phas', 'phase'],
    ['limits', 'limit'],
    ['befor', 'before'],
    ['form', 'from'],
    ['too', 'to'],
    ['befo', 'before'],
  ])('the suggestion for %s is %s', (misspelt, name) => {
    expect(suggestion(misspelt, NAMES)).toBe(`did you mean "${name}"?`);
  });

  it('the suggestion is the nearest of several names', () => {
    expect(suggestion('limit', ['limits', 'limit', 'limt'])).toBe('did you mean "limit"?');
  });

  it.each(['member', 'bxxxre', '', 'x', 'id', 'limitless', 'x'.repeat(100_000)])(
    'there is no suggestion for %.20s',
    (misspelt) => {
      expect(suggestion(misspelt, NAMES)).toBeUndefined();
    },
  );
});

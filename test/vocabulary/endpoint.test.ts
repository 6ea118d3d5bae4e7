import { expect, it } from 'vitest';
import { EVENTS_LIMIT, LIST_LIMIT, limitParameter } from '../../src/vocabulary/endpoint.ts';

it.each([
  [LIST_LIMIT, { minimum: 1, maximum: 200, default: 50 }],
  [EVENTS_LIMIT, { minimum: 1, maximum: 10_000, default: 1_000 }],
])('the limit %o is described as a query parameter', (limit, schema) => {
  const expected = { name: 'limit', in: 'query', description: 'maximum number of items' };
  expect(limitParameter(limit)).toEqual({ ...expected, schema: { type: 'integer', format: 'int64', ...schema } });
});

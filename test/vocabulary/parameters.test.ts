import { describe, expect, it } from 'vitest';
import { EVENTS_LIMIT, LIST_LIMIT, limitParameter } from '../../src/vocabulary/endpoint.ts';
import { parseCursor, parseId, parseInteger, requireQuery } from '../../src/vocabulary/parameters.ts';
import { outcomeOf } from '../kit/given.ts';

const NEITHER_ID_NOR_CURSOR = ['', 'abc', '-1', '+1', '01', '1.0', '1e3', ' 1', '0x1', '1\n', '١', '9007199254740992'];
const BOUNDS = { min: 1, max: 200 };

describe('a path or query parameter', () => {
  it.each([...NEITHER_ID_NOR_CURSOR, '0', undefined])('%j is not an id', (text) => {
    expect(parseId(text)).toBeUndefined();
  });

  it('an id is an integer from 1 to 2^53 − 1', () => {
    expect([parseId('1'), parseId('9007199254740991')]).toEqual([1, Number.MAX_SAFE_INTEGER]);
  });

  it.each(NEITHER_ID_NOR_CURSOR)('%j is not a cursor', (text) => {
    expect(outcomeOf(() => parseCursor('after', text))).toMatchObject({
      code: 'FORUM_ERR_VALIDATION',
      detail: 'after: must be an integer from 0 to 9,007,199,254,740,991',
    });
  });

  it('a cursor is an integer from 0, or absent', () => {
    expect([parseCursor('after', '0'), parseCursor('after', '12'), parseCursor('after', undefined)]).toEqual([
      0,
      12,
      undefined,
    ]);
  });

  it.each(['0', '201', '5.5', 'ten', ''])('%j is not a limit', (text) => {
    expect(outcomeOf(() => parseInteger('limit', text, BOUNDS))).toMatchObject({
      code: 'FORUM_ERR_VALIDATION',
      detail: 'limit: must be an integer from 1 to 200',
    });
  });

  it('a limit is within the bounds, or absent', () => {
    expect(['1', '200', undefined].map((text) => parseInteger('limit', text, BOUNDS))).toEqual([1, 200, undefined]);
  });

  it.each([
    [LIST_LIMIT, { minimum: 1, maximum: 200, default: 50 }],
    [EVENTS_LIMIT, { minimum: 1, maximum: 10_000, default: 1_000 }],
  ])('the limit %o has this schema', (limit, schema) => {
    const expected = { name: 'limit', in: 'query', description: 'maximum number of items' };
    expect(limitParameter(limit)).toEqual({ ...expected, schema: { type: 'integer', format: 'int64', ...schema } });
  });
});

describe('a query', () => {
  const check = (query: string) =>
    outcomeOf(() => requireQuery(`http://localhost/chambers${query}`, ['phase', 'limit']));

  it.each(['', '?', '?phase=LOBBY', '?limit=1&phase=LOBBY', '?limit='])('the query %j is accepted', (query) => {
    expect(check(query)).toBeUndefined();
  });

  it.each([
    ['?limit=1&limit=2', 'limit: must not be given twice'],
    ['?member=x', 'member: unknown query parameter; known: phase, limit'],
    ['?limits=1', 'limits: unknown query parameter; did you mean "limit"?'],
    ['?=1', 'query: unknown query parameter; known: phase, limit'],
  ])('the query %j is rejected', (query, detail) => {
    expect(check(query)).toEqual({ code: 'FORUM_ERR_VALIDATION', detail });
  });
});

import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, JSON_DEPTH_MAX, parseJson } from '../../src/vocabulary/json.ts';
import { outcomeOf } from '../kit/given.ts';

function nested(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels);
}

function refusal(detail: string) {
  return { code: 'FORUM_ERR_VALIDATION', detail: expect.stringContaining(detail) };
}

describe('parsing hostile JSON', () => {
  it.each([
    '{"a":{"a":1},"b":[{"a":1},{"a":1}]}',
    '{"text":"colons: \\"a\\":1, braces {[ and a backslash \\\\","":0}',
    '["\\ud83d\\ude00", "😀", ""]',
    '[9007199254740991, -9007199254740991, 0.1, -1.5e-7, 1e2, -0]',
    ' \t\r\n{ } ',
    'null',
  ])('parsing %s returns what JSON.parse returns', (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  it.each([
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '[{"b":{"":1,"":1}}]',
    '{"__proto__":1,"__proto__":2}',
    '{"a":"\\"","a":1}',
    '{"a\\\\":1,"a\\\\":2}',
  ])('parsing rejects a duplicate member name in %s', (text) => {
    expect(outcomeOf(() => parseJson(text))).toEqual(refusal('same member name twice'));
  });

  it('parsing accepts 32 levels of arrays and objects, and rejects one more', () => {
    expect(parseJson(nested(JSON_DEPTH_MAX))).toBeInstanceOf(Array);
    expect(outcomeOf(() => parseJson(nested(JSON_DEPTH_MAX + 1)))).toEqual(refusal('deeper than 32'));
    const objects = `${'{"a":'.repeat(32)}{}${'}'.repeat(32)}`;
    expect(outcomeOf(() => parseJson(objects))).toEqual(refusal('deeper than 32'));
  });

  it('parsing counts only open levels', () => {
    const siblings = { objects: Array(1_000).fill({}), arrays: Array(1_000).fill([]) };
    expect(parseJson(JSON.stringify(siblings))).toEqual(siblings);
  });

  it('parsing rejects a million levels, closed or not, without a stack overflow', () => {
    expect(outcomeOf(() => parseJson(nested(1_000_000)))).toEqual(refusal('deeper than 32'));
    expect(outcomeOf(() => parseJson('['.repeat(1_000_000)))).toEqual(refusal('deeper than 32'));
  });

  it('parsing does not count brackets in strings', () => {
    expect(parseJson(JSON.stringify([nested(100), '{:"'.repeat(50)]))).toHaveLength(2);
  });

  it.each(['[1e400]', '{"a":-1e999}'])('parsing rejects the infinite number in %s', (text) => {
    expect(outcomeOf(() => parseJson(text))).toEqual(refusal('not finite'));
  });

  it.each(['[9007199254740992]', '{"a":-9007199254740993}', '[1e300]'])(
    'parsing rejects the unsafe integer in %s',
    (text) => {
      expect(outcomeOf(() => parseJson(text))).toEqual(refusal('integers must be within'));
    },
  );

  it.each(['["\\ud800"]', '["\\udc00\\ud800"]', '{"a":{"b":"x\\ud83d"}}', '{"\\udfff":1}'])(
    'parsing rejects the lone surrogate in %s',
    (text) => {
      expect(outcomeOf(() => parseJson(text))).toEqual(refusal('surrogate'));
    },
  );

  it('the error names the position of rejected JSON', () => {
    expect(outcomeOf(() => parseJson('{"a":[0,{"b":1e999}]}'))).toEqual(refusal('body.a[1].b'));
  });

  it.each([
    '',
    '{',
    '{"a":}',
    "{'a':1}",
    '[1,]',
    '01',
    'NaN',
    '\ufeff{}',
    '{}{}',
    '{"a":1',
    '"abc',
    '"\\"',
    '\u00a0[]',
  ])('parsing rejects malformed %j', (text) => {
    expect(outcomeOf(() => parseJson(text))).toEqual(refusal('not valid JSON'));
  });

  it.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'])(
    'parsing keeps a member named %s without changing the prototype',
    (name) => {
      const value = parseJson(`{"${name}":{"polluted":true}}`) as Record<string, unknown>;
      expect(Object.keys(value)).toEqual([name]);
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect({}).not.toHaveProperty('polluted');
    },
  );
});

const jsonValue = fc.jsonValue({ maxDepth: 6, stringUnit: 'grapheme' });

describe('canonical JSON', () => {
  it('canonical JSON equals that of an independent implementation of RFC 8785', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        expect(canonicalJson(value)).toBe(canonicalize(value));
      }),
      { numRuns: 500 },
    );
  });

  it('canonical JSON is unchanged after parsing and writing', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
      { numRuns: 500 },
    );
  });

  it('canonical JSON does not depend on the order of members', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 2 })), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(reversed)).toBe(canonicalJson(value));
      }),
    );
  });

  it('canonical JSON sorts members by UTF-16 code units, as in RFC 8785, 3.2.3', () => {
    const names = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6'];
    const text = canonicalJson(Object.fromEntries(names.map((name) => [name, 0])));
    expect(Object.keys(JSON.parse(text))).toEqual(['1', '\r', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33']);
  });

  it('canonical JSON writes numbers like ECMAScript', () => {
    const numbers = JSON.parse('[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001, -0]');
    expect(canonicalJson(numbers)).toBe('[333333333.3333333,1e+30,4.5,0.002,1e-27,0]');
  });

  it('canonical JSON keeps a member named __proto__', () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":[]}}'))).toBe('{"__proto__":{"a":[]},"b":1}');
  });

  it('canonical JSON omits undefined members', () => {
    expect(canonicalJson({ a: undefined, b: null })).toBe('{"b":null}');
  });
});

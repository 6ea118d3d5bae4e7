// Splitting a dictionary field (RFC 9651) into the texts of its members.
import { expect, test } from 'vitest';
import { dictionaryMembers } from '../../src/crypto/dictionary-field.ts';

test.each([
  ['a display string that ends with a backslash', 'a=%"x\\"'],
  ['a display string with a backslash', 'a=%"x\\y"'],
  ['a display string with an encoded quote and a comma', 'a=%"%22, sig1=1"'],
  ['a string with an escaped quote and a comma', 'a="\\", sig1=1"'],
  ['a string that ends with an escaped backslash', 'a="x\\\\"'],
  ['a string that ends with a percent sign', 'a="%"'],
  ['parameters of both kinds', 'a;p="\\"";q=%"\\"'],
])('a member is recognised after %s', (_what, first) => {
  const members = dictionaryMembers(`${first}, sig1=:AA==:`);
  expect([...(members ?? [])]).toEqual([
    ['a', first],
    ['sig1', 'sig1=:AA==:'],
  ]);
});

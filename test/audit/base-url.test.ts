// The normal form of a service's address, in which the auditor compares requests, options and wallet proofs.
import { expect, test } from 'vitest';
import { baseOf, normalBase } from '../../src/audit/line/evidence.ts';

const PATH = '/chambers/1/pass';

test.each([
  ['https://h.example/a%20b', 'https://h.example/a%20b'],
  ['https://h.example/%7Ex', 'https://h.example/~x'],
  ['https://h.example/x%41', 'https://h.example/xA'],
  ['https://h.example/%c3%a9', 'https://h.example/%C3%A9'],
  ['https://h.example/é', 'https://h.example/%C3%A9'],
  ['https://h.example/a%2fb', 'https://h.example/a%2Fb'],
  ['https://h.example/a%2520b', 'https://h.example/a%2520b'],
  ['https://h.example/a%252Fb', 'https://h.example/a%252Fb'],
  ['https://h.example/[x]%5Bx%5D', 'https://h.example/%5Bx%5D%5Bx%5D'],
  ['https://h.example/a%25', 'https://h.example/a%25'],
])('%s is normalized to %s in requests and options', (address, base) => {
  expect([baseOf(address + PATH, PATH), normalBase(address), normalBase(`${address}/`)]).toEqual([base, base, base]);
  expect(normalBase(base)).toBe(base);
});

test('a URL with a percent-encoding that is not UTF-8 is not an address', () => {
  expect([baseOf(`https://h.example/%E9${PATH}`, PATH), normalBase('https://h.example/%E9')]).toEqual([
    undefined,
    undefined,
  ]);
});

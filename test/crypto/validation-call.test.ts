// Which call results mean that a contract accepted a signature.
import type { Hex } from 'viem';
import { expect, test } from 'vitest';
import { isAcceptance, validationCall } from '../../src/crypto/validation-call.ts';

const WALLET = `0x${'c0'.repeat(20)}`;
const HASH: Hex = `0x${'12'.repeat(32)}`;
const MAGIC = '0x1626ba7e';

test('a wallet accepts only by a result that is exactly one word with the magic value', () => {
  const call = validationCall(WALLET, HASH, '0x');
  const word: Hex = `${MAGIC}${'0'.repeat(56)}`;
  expect(call.to).toBe(WALLET);
  expect(isAcceptance(call, word)).toBe(true);
  const others: readonly Hex[] = [call.data, MAGIC, `${word}00`, `${MAGIC}${'0'.repeat(55)}1`, '0x'];
  for (const result of others) expect([result, isAcceptance(call, result)]).toEqual([result, false]);
});

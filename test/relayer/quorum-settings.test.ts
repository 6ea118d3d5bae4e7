import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readQuorumSettings } from '../../src/relayer/quorum-settings.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { quorumFile, SETTINGS } from './quorum-file.ts';

test('a file with every member is read; salt and value are optional', () => {
  expect(readQuorumSettings(quorumFile())).toEqual({ ...SETTINGS, value: 0n });
  const salt = `0x${'5a'.repeat(32)}`;
  expect(readQuorumSettings(quorumFile({ salt, value: '7' }))).toMatchObject({ salt, value: 7n });
});

test.each<readonly [string, object, RegExp]>([
  ['a missing member', { image: undefined }, /image is missing$/],
  ['an unknown member', { imagee: '' }, /unknown member "imagee"; did you mean "image"\?$/],
  ['a member that comes from the chamber', { creator: SETTINGS.forPool }, /unknown member "creator"/],
  [
    'an address with a wrong checksum',
    { forPool: `0x${'Aa'.repeat(20)}` },
    /forPool must have a valid EIP-55 checksum/,
  ],
  ['a tick beyond 24 bits', { tickSpacing: 8_388_608 }, /tickSpacing must be an integer from -8388608 to 8388607$/],
  ['five shares', { bps: [2_000, 2_000, 2_000, 2_000, 2_000] }, /bps.5 is missing$/],
  ['odd hex digits', { poolData: '0x1' }, /poolData must be 0x and an even number of hex digits$/],
  ['positions of different lengths', { tickLower: [] }, /tickLower, tickUpper and positionBps must be equally long$/],
  ['a value in ether', { value: '0.1' }, /value must be wei as a string of digits$/],
  ['several problems at once', { image: 1, bps: 2 }, /image must be a string; bps must be an array of 6 integers$/],
])('%s is reported', (_title, changes, problem) => {
  const path = quorumFile(changes);
  expect(() => readQuorumSettings(path)).toThrow(problem);
  expect(() => readQuorumSettings(path)).toThrow(`${path}: `);
});

test('a missing file, a folder and invalid JSON are reported', () => {
  const path = quorumFile();
  expect(() => readQuorumSettings(`${path}.missing`)).toThrow(`${path}.missing not found`);
  const folder = temporaryFolder();
  expect(() => readQuorumSettings(folder)).toThrow(`${folder} can’t be read: EISDIR`);
  writeFileSync(path, '{');
  expect(() => readQuorumSettings(path)).toThrow(`${path} is not JSON`);
});

import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isOpenToOthers } from '../../src/files/private-file.ts';
import { temporaryFolder } from '../kit/temporary.ts';

it.each([
  ['a file that only its owner may read', 0o600, 'linux', false],
  ['a file that its group may read', 0o640, 'linux', true],
  ['a file that others may read', 0o604, 'darwin', true],
  ['a file on Windows, which reports this mode for every file', 0o666, 'win32', false],
])('%s (mode %o on %s) is open to others: %s', (_, mode, platform, isOpen) => {
  const folder = temporaryFolder();
  const path = join(folder, 'key');
  writeFileSync(path, 'secret');
  chmodSync(path, mode);
  expect(isOpenToOthers(path, platform)).toBe(isOpen);
  expect(readdirSync(folder)).toEqual(['key']);
});

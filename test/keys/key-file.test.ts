import { chmodSync, existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createKeyFile, defaultKeyFile, readKeyFile, rotateKeyFile } from '../../src/keys/key-file.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const LOG_ID = 'ab'.repeat(16);
const NOW = Date.parse('2030-01-01T00:00:00.000Z');

async function newFile(): Promise<string> {
  const path = defaultKeyFile(join(temporaryFolder(), 'chambers.db'), LOG_ID);
  await createKeyFile(path, LOG_ID, NOW);
  return path;
}

describe('a key file', () => {
  it('a key file is created with mode 0600 and one key for each use', async () => {
    const path = await newFile();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const { keys } = readKeyFile(path, LOG_ID)?.directory() ?? {};
    expect(keys).toMatchObject([
      { purpose: 'receipts', nbf: NOW / 1000 },
      { purpose: 'checkpoints', nbf: NOW / 1000 },
    ]);
    expect(JSON.stringify(keys)).not.toContain('seed');
  });

  it('a key file that another process has just created is read, and no draft remains', async () => {
    const path = await newFile();
    const text = readFileSync(path, 'utf8');
    expect((await createKeyFile(path, LOG_ID, NOW + 1)).pins(NOW)).toEqual(readKeyFile(path, LOG_ID)?.pins(NOW));
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(readdirSync(join(path, '..'))).toHaveLength(1);
  });

  it('a key file is accepted on Windows, which reports the same mode for every file', async () => {
    const path = await newFile();
    chmodSync(path, 0o666);
    const { platform } = process;
    Object.defineProperty(process, 'platform', { value: 'win32' });
    try {
      expect(readKeyFile(path, LOG_ID)?.logId).toBe(LOG_ID);
    } finally {
      Object.defineProperty(process, 'platform', { value: platform });
    }
  });

  it('a missing key file is read as undefined', () => {
    expect(readKeyFile(join(temporaryFolder(), 'none.json'), LOG_ID)).toBeUndefined();
  });

  it.each<[string, (path: string) => void, RegExp]>([
    ['others may read', (path) => chmodSync(path, 0o640), /other users can access it: run chmod 600/],
    ['is truncated', (path) => truncateSync(path, 100), /it is truncated or not JSON/],
    ['is empty', (path) => truncateSync(path, 0), /it is truncated or not JSON/],
    ['is another log’s', (path) => edit(path, LOG_ID, 'cd'.repeat(16)), /has the keys of log cdcd.*this log is abab/],
    ['has a short seed', (path) => edit(path, /0x[0-9a-f]{64}/, '0x12'), /keys\.0\.seed is invalid/],
    ['has no key for a use', (path) => edit(path, '"checkpoints"', '"receipts"'), /it has no key for checkpoints/],
    [
      'has retired its newest key',
      (path) => edit(path, 'null', '"2031-01-01T00:00:00.000Z"'),
      /must have "until": null/,
    ],
  ])('a key file that %s is rejected in one line, without a seed', async (_what, change, expected) => {
    const path = await newFile();
    const [, seed = ''] = /(0x[0-9a-f]{64})/.exec(readFileSync(path, 'utf8')) ?? [];
    change(path);
    let message = '';
    try {
      readKeyFile(path, LOG_ID);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(expected);
    expect(message).toContain(path);
    expect(message).not.toMatch(/\n/);
    expect(message).not.toContain(seed);
  });
});

function edit(path: string, from: string | RegExp, to: string): void {
  writeFileSync(path, readFileSync(path, 'utf8').replace(from, to));
}

describe('new keys', () => {
  const later = NOW + 1_000;
  const until = NOW + 10_000;

  it('new keys sign from now on, and the directory keeps the former keys with their end', async () => {
    const path = await newFile();
    const before = readKeyFile(path, LOG_ID);
    const after = await rotateKeyFile(path, { now: later, until });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(after.pins(NOW)).toEqual(before?.pins(NOW));
    expect(after.pins(later)).not.toEqual(before?.pins(NOW));
    expect(after.directory().keys.map(({ exp }) => exp)).toEqual([until / 1000, until / 1000, undefined, undefined]);
  });

  it('new keys do not replace a chamber’s pinned key before its end', async () => {
    const path = await newFile();
    const { receipts = '' } = readKeyFile(path, LOG_ID)?.pins(NOW) ?? {};
    const keys = await rotateKeyFile(path, { now: later, until });
    expect(keys.pinned('receipts', receipts, until - 1).thumbprint).toBe(receipts);
    expect(keys.pinned('receipts', receipts, until).thumbprint).toBe(keys.pins(until).receipts);
    expect(keys.pinned('receipts', undefined, later).thumbprint).toBe(keys.pins(later).receipts);
  });

  it('new keys need an existing file', async () => {
    const path = join(temporaryFolder(), 'none.json');
    await expect(rotateKeyFile(path, { now: NOW, until })).rejects.toThrow('not found');
    expect(existsSync(path)).toBe(false);
  });
});

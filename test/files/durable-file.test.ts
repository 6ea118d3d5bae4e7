import { appendFileSync, chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { appendLine, createFile, draftOf, makeFolder, moveFile, replaceFile } from '../../src/files/durable-file.ts';
import { temporaryFolder } from '../kit/temporary.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, 'file');
});

const content = () => readFileSync(path, 'utf8');

describe('replaceFile', () => {
  it('replaceFile creates and replaces a file, and leaves no draft', async () => {
    await replaceFile(path, 'old', { mode: 0o600 });
    await replaceFile(path, Buffer.from('new'));
    expect(content()).toBe('new');
    expect(readdirSync(folder)).toEqual(['file']);
  });

  it('replaceFile sets the given mode, or keeps that of the replaced file', async () => {
    await replaceFile(path, 'text', { mode: 0o600, keepsOwner: true });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    chmodSync(path, 0o444);
    await replaceFile(path, 'text', { mode: 0o600, keepsOwner: true });
    expect(statSync(path).mode & 0o777).toBe(0o444);
  });

  it.runIf(process.getuid?.() === 0)('replaceFile keeps the owner of a file that root replaces', async () => {
    const { chownSync } = await import('node:fs');
    writeFileSync(path, 'text');
    chownSync(path, 1234, 1235);
    await replaceFile(path, 'other', { keepsOwner: true });
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 1235 });
  });

  it('replaceFile leaves the old file and no draft if it fails', async () => {
    mkdirSync(path);
    await expect(replaceFile(path, 'text')).rejects.toMatchObject({ code: 'EISDIR' });
    expect(readdirSync(folder)).toEqual(['file']);
  });

  it('replaceFile leaves the content of one of several concurrent writers', async () => {
    const texts = Array.from({ length: 20 }, (_, writer) => `${writer}`.repeat(10_000));
    await Promise.all(texts.map((text) => replaceFile(path, text)));
    expect(texts).toContain(content());
    expect(readdirSync(folder)).toEqual(['file']);
  });
});

describe('createFile', () => {
  it('createFile creates a file but replaces none', async () => {
    await createFile(path, 'first', { mode: 0o600 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await expect(createFile(path, 'second')).rejects.toMatchObject({ code: 'EEXIST' });
    expect(content()).toBe('first');
    expect(readdirSync(folder)).toEqual(['file']);
  });
});

it('each draft has a different name', () => {
  expect(new Set(Array.from({ length: 100 }, () => draftOf(path))).size).toBe(100);
});

it('moveFile renames a draft that another program wrote', async () => {
  const draft = draftOf(path);
  writeFileSync(draft, 'text');
  await moveFile(draft, path, { isNew: true });
  expect([content(), readdirSync(folder)]).toEqual(['text', ['file']]);
});

describe('appendLine', () => {
  const LONG = 'x'.repeat(200_000);

  it('appendLine creates the file or appends to it', async () => {
    await appendLine(path, '1', { mode: 0o600 });
    await appendLine(path, '2');
    expect(content()).toBe('1\n2\n');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['removes a line that was cut off', `{"a":1}\n{"b":"${LONG}`, '{"a":1}\n2\n'],
    ['removes a first line that was cut off', '{"b', '2\n'],
    ['removes the zeros that a power cut may leave', '{"a":1}\n\0\0\0', '{"a":1}\n2\n'],
    ['completes a line that lacks only its line break', `{"a":1}\n{"b":"${LONG}"}`, `{"a":1}\n{"b":"${LONG}"}\n2\n`],
  ])('appendLine %s', async (_, torn, repaired) => {
    writeFileSync(path, torn);
    await appendLine(path, '2');
    expect(content()).toBe(repaired);
  });

  it('appendLine does not touch a line that another process is still writing', async () => {
    writeFileSync(path, '{"a":');
    const appended = appendLine(path, '2');
    setTimeout(() => appendFileSync(path, '1}\n'), 50);
    await appended;
    expect(content()).toBe('{"a":1}\n2\n');
  });

  it.each([
    ['cut off', '{"torn', []],
    ['complete except for its line break', '"whole"', ['"whole"']],
  ])('appendLine keeps the lines of concurrent writers after a line that is %s', async (_, tail, kept) => {
    const lines = Array.from({ length: 20 }, (_line, index) => `${index}`);
    for (const file of Array.from({ length: 40 }, (_file, index) => `${path}-${index}`)) writeFileSync(file, tail);
    const append = async (file: string) => {
      await Promise.all(lines.map((line) => appendLine(file, line)));
      return readFileSync(file, 'utf8').split('\n').slice(0, -1).sort();
    };
    const written = await Promise.all(Array.from({ length: 40 }, (_file, index) => append(`${path}-${index}`)));
    expect(written).toEqual(Array(40).fill([...kept, ...lines].sort()));
  });
});

it('makeFolder creates a folder and its parents', async () => {
  const deep = join(folder, 'a', 'b', 'c');
  await makeFolder(deep, { mode: 0o700 });
  await makeFolder(deep);
  expect(statSync(deep).mode & 0o777).toBe(0o700);
});

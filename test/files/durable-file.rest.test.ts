// Checks system calls: files are durable when a function returns.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { hasStrace, runWithoutLinks } from '../kit/strace.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const SOURCE = fileURLToPath(new URL('../../src/files/durable-file.ts', import.meta.url));
const CALLS = 'trace=fsync,rename,renameat,renameat2,link,linkat,mkdir,mkdirat';

/** Returns the script's system calls on files below the folder, in order, each with its file names. */
function callsOf(folder: string, script: string): readonly string[] {
  const trace = join(folder, 'trace');
  const program = `import * as files from ${JSON.stringify(SOURCE)};\n${script}`;
  const node = [process.execPath, '--input-type=module', '-e', program];
  execFileSync('strace', ['-f', '-y', '-e', CALLS, '-o', trace, ...node], {
    cwd: join(folder, 'here'),
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' },
  });
  return readFileSync(trace, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, call = ''] = /^\d+ +(\w+)\(/.exec(line) ?? [];
      const names = [...line.matchAll(/here(?:\/[\w./-]*)?|"([\w./-]+)"/g)].map(([name]) => name.replaceAll('"', ''));
      const named = names.map((name) => name.replace(/[0-9a-f]{8}\.partial$/, 'draft').replace(/^here\//, ''));
      return call === '' || named.length === 0 ? [] : [`${call.replace(/at2?$/, '')} ${named.join(' ')}`];
    });
}

it.runIf(hasStrace).each([
  ['replaceFile', `await files.replaceFile('file', 'text')`, 'rename'],
  ['createFile', `await files.createFile('new', 'text')`, 'link'],
])('%s flushes the draft before renaming it, and then the folder', (_, script, move) => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'here'));
  writeFileSync(join(folder, 'here', 'file'), 'old');
  const name = move === 'link' ? 'new' : 'file';
  expect(callsOf(folder, script)).toEqual([`fsync ${name}.draft`, `${move} ${name}.draft ${name}`, 'fsync here']);
});

it.runIf(hasStrace)('appendLine flushes the file and the folder', () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'here'));
  expect(callsOf(folder, `await files.appendLine('file', '1')`)).toEqual(['fsync file', 'fsync here']);
});

it.runIf(hasStrace)('makeFolder flushes the parent of each new folder', () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'here'));
  const flushed = callsOf(folder, `await files.makeFolder('a/b')`).filter((call) => call.startsWith('fsync'));
  expect(flushed).toEqual(['fsync a', 'fsync here']);
});

/** The errors of exFAT and SMB, and of Windows and old network file systems. */
const NO_LINKS = ['EPERM', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL'];

it.runIf(hasStrace).each(NO_LINKS)('createFile creates a file only once even if links fail with %s', (error) => {
  const folder = temporaryFolder();
  const path = JSON.stringify(join(folder, 'file'));
  const program = `import * as files from ${JSON.stringify(SOURCE)};
    await files.createFile(${path}, 'first');
    const codes = [await files.createFile(${path}, 'second').catch(({ code }) => code)];
    process.stdout.write(codes.join());`;
  const node = [process.execPath, '--input-type=module', '-e', program];
  expect(runWithoutLinks(error, node)).toBe('EEXIST');
  expect(readdirSync(folder)).toEqual(['file']);
  expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('first');
});

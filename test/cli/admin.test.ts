// An operator makes keys, and bans and allows agents.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Signer } from '../kit/signer.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { run } from './run.ts';

const { did } = new Signer();

describe('chambers admin new-keys', () => {
  it('adds keys only to the file of the database’s log', async () => {
    const folder = temporaryFolder();
    const newKeys = (database: string, file = 'keys.json') =>
      run(['admin', 'new-keys', '--json', `--file=${join(folder, file)}`], { DATABASE_PATH: join(folder, database) });
    for (const added of [false, true]) expect(JSON.parse((await newKeys('one.db')).out)).toMatchObject({ added });
    const before = readFileSync(join(folder, 'keys.json'), 'utf8');
    await newKeys('other.db', 'other.json');
    const { exitCode, err } = await newKeys('other.db');
    expect(exitCode).toBe(1);
    expect(err).toContain('chambers new-log continues it');
    expect(readFileSync(join(folder, 'keys.json'), 'utf8')).toBe(before);
  });
});

describe.each([
  ['ban', 'unban', 'BAN_LIST_FILE'],
  ['allow', 'disallow', 'ALLOW_LIST_FILE'],
])('chambers admin %s and %s', (add, remove, variable) => {
  it(`edit the file of ${variable} and report whether it changed`, async () => {
    const file = join(temporaryFolder(), 'list');
    const edit = async (name: string) => {
      const { exitCode, out } = await run(['--json', 'admin', name, did], { [variable]: file });
      return { exitCode, ...JSON.parse(out) };
    };
    const about = { exitCode: 0, did, file };
    expect(await edit(add)).toEqual({ ...about, listed: true, changed: true });
    expect(await edit(add)).toEqual({ ...about, listed: true, changed: false });
    expect(readFileSync(file, 'utf8')).toBe(`${did}\n`);
    expect(await edit(remove)).toEqual({ ...about, listed: false, changed: true });
    expect(await edit(remove)).toEqual({ ...about, listed: false, changed: false });
    expect(readFileSync(file, 'utf8')).toBe('');
  });

  it('accept another file, and report a missing or wrong argument', async () => {
    const file = join(temporaryFolder(), 'list');
    expect(await run(['admin', add, did, `--file=${file}`])).toMatchObject({ exitCode: 0, err: '' });
    expect(readFileSync(file, 'utf8')).toBe(`${did}\n`);
    const usage = (err: string) => ({ exitCode: 2, out: '', err: `usage: ${err}` });
    expect(await run(['admin', add, did])).toEqual(usage(`no list to edit: set ${variable} or use --file`));
    const wrong = await run(['admin', add, 'did:key:z6Mk', `--file=${file}`]);
    expect(wrong).toEqual(usage('“did:key:z6Mk” is not a did:key of an Ed25519 key'));
    expect(await run(['admin', remove, did, '--file=/nowhere/list'])).toMatchObject({ exitCode: 1, out: '' });
  });
});

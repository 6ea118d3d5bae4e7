// An operator creates keys, and bans and allows agents.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../src/demo/free-port.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { newAgent, newChamber, runLiveService } from '../client/live-service.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { run } from './run.ts';

const { did } = new Signer();

describe('chambers admin new-keys', () => {
  it('admin new-keys adds keys only to a file that belongs to the database’s log', async () => {
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

describe('chambers withhold-in', () => {
  it('an unreachable service is reported with exit code 6', async () => {
    const path = temporaryDatabase();
    await openSqliteStore(path).close();
    const from = `http://127.0.0.1:${await freePort()}/log/${'0'.repeat(32)}/withheld`;
    const { exitCode, err } = await run(['withhold-in', path, `--from=${from}`]);
    expect([exitCode, err]).toEqual([
      6,
      expect.stringContaining(`no complete response from ${from}: connect ECONNREFUSED`),
    ]);
  });
});

describe.each([
  ['ban', 'unban', 'BAN_LIST_FILE'],
  ['allow', 'disallow', 'ALLOW_LIST_FILE'],
])('chambers admin %s and %s', (add, remove, variable) => {
  it(`the command edits the file named by ${variable} and reports whether it changed`, async () => {
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

  it('the command accepts a different file, and reports a missing or invalid argument', async () => {
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

describe('chambers admin withhold', () => {
  const SETTINGS = { DATABASE_PATH: '/nowhere/chambers.db', PUBLIC_URL: 'https://forum.example.org' };

  it('admin withhold adds events to the file named by WITHHOLD_FILE, and prints the remaining steps', async () => {
    const file = join(temporaryFolder(), 'withhold');
    const withhold = async (...args: string[]) => {
      const words = ['--json', 'admin', 'withhold', ...args, '--reason=law'];
      const { exitCode, out } = await run(words, { ...SETTINGS, WITHHOLD_FILE: file });
      return { exitCode, ...JSON.parse(out) };
    };
    const log = 'https://forum.example.org/log/<logId>/withheld';
    const pages = 'https://forum.example.org/chambers/3/events?log=<logId>';
    expect(await withhold('3', '17', '2000', '2001')).toEqual({
      exitCode: 0,
      file,
      reason: 'law',
      added: ['3:17', '3:2000', '3:2001'],
      listed: [],
      purge: [
        `${pages}&after=0&limit=1000`,
        'https://forum.example.org/chambers/3/outcome',
        `${pages}&after=1000&limit=1000`,
        `${pages}&after=2000&limit=1000`,
      ],
      stubs: [log],
      backups: [`chambers withhold-in BACKUP --from=${log}  # for each backup`],
      database: [],
    });
    const account = `https://forum.example.org/agents/${did}`;
    expect(await withhold(did, '2')).toMatchObject({ added: [`${did}:2`], purge: [account, `${account}/events`] });
    expect(readFileSync(file, 'utf8')).toBe(`3:17 law\n3:2000 law\n3:2001 law\n${did}:2 law\n`);
  });

  it('admin withhold prints and keeps the reason of an event that is already listed', async () => {
    const file = join(temporaryFolder(), 'withhold');
    const withhold = (reason: string, ...more: string[]) =>
      run([...more, 'admin', 'withhold', '3', '17', `--reason=${reason}`, `--file=${file}`]);
    await withhold('abuse');
    expect(JSON.parse((await withhold('law', '--json')).out)).toMatchObject({ added: [], listed: ['3:17 abuse'] });
    expect((await withhold('law')).out).toContain('3:17 is already listed with the reason abuse, which stays');
    expect(readFileSync(file, 'utf8')).toBe('3:17 abuse\n');
  });

  it('admin withhold prints the command that erases the text in a backup', async () => {
    const folder = temporaryFolder();
    const [file, backup] = [join(folder, 'withhold'), join(folder, 'backup.db')];
    writeFileSync(file, '');
    const database = { DATABASE_PATH: join(folder, 'chambers.db') };
    const live = await runLiveService({ ...database, WITHHOLD_FILE: file });
    const { chamberId } = await (await newAgent(live)).createChamber({
      ...newChamber(live.now()),
      name: 'A dark garden',
    });
    expect(await run(['backup', backup], database)).toMatchObject({ exitCode: 0 });
    const settings = { ...database, WITHHOLD_FILE: file, PUBLIC_URL: live.baseUrl };
    const { out } = await run(['--json', 'admin', 'withhold', `${chamberId}`, '1', '--reason=law'], settings);
    live.service.reloadLists();
    const [stubs, command] = [JSON.parse(out).stubs[0] as string, JSON.parse(out).backups[0] as string];
    await eventually(async () => expect(await (await fetch(stubs)).text()).toContain('"withheld"'), 10_000);
    const [name, ...words] = command.replace(/ +#.*/, '').replace('BACKUP', backup).split(' ');
    expect([name, await run(words)]).toEqual(['chambers', expect.objectContaining({ exitCode: 0 })]);
    expect(readFileSync(backup).includes('A dark garden')).toBe(false);
  });

  it('admin withhold prints the statement that purges PostgreSQL’s files, without a password', async () => {
    const file = `--file=${join(temporaryFolder(), 'withhold')}`;
    const database = { DATABASE_URL: 'postgres://chambers:secret@127.0.0.1:1/chambers' };
    const { out } = await run(['admin', 'withhold', '3', '17', '--reason=abuse', file], database);
    expect(out).toContain("psql postgres://127.0.0.1:1/chambers -c 'VACUUM FULL events, ");
    expect(out).not.toContain('secret@');
  });

  it.each([
    [['x', '17', '--reason=law', '--file=list'], '“x” is neither a chamber nor a did:key of an Ed25519 key'],
    [['3', 'x', '--reason=law', '--file=list'], 'an event must be an integer of at least 1, not “x”'],
    [['3', '17', '--reason=rude', '--file=list'], '--reason must be one of personal-data, secret, abuse, law'],
    [['3', '17', '--reason=law'], 'no list to edit: set WITHHOLD_FILE or use --file'],
  ])('admin withhold rejects %j', async (args, problem) => {
    expect(await run(['admin', 'withhold', ...args])).toEqual({ exitCode: 2, out: '', err: `usage: ${problem}` });
  });
});

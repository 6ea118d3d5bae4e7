// The operator's lists of agents that may register, create and join, edited while the service runs.
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AccessList, editAccessList } from '../../src/http/access-list.ts';
import { deadlinesFrom, openChamber } from '../kit/chambers.ts';
import { Signer } from '../kit/signer.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { registrationOf, withAgent } from '../kit/test-service.ts';

const [ANN, BOB] = [new Signer(), new Signer()];

function listOf(files: { readonly allow?: string; readonly ban?: string }) {
  const folder = temporaryFolder();
  const path = (name: 'allow' | 'ban') => (files[name] === undefined ? undefined : join(folder, name));
  for (const name of ['allow', 'ban'] as const)
    if (files[name] !== undefined) writeFileSync(join(folder, name), files[name]);
  const problems: Error[] = [];
  const counts: object[] = [];
  const list = new AccessList({
    allowFile: path('allow'),
    banFile: path('ban'),
    onProblem: (error) => problems.push(error),
    onRead: (read) => counts.push(read),
  });
  atEnd(async () => list.close());
  return { list, problems, counts, folder };
}

describe('an access list', () => {
  it('an access list without files permits every agent', () => {
    expect(listOf({}).list.permits(ANN.did)).toBe(true);
  });

  it('an access list permits all but the banned agents, and ignores comments and blank lines', () => {
    const { list } = listOf({ ban: `# spam\n\n${ANN.did} # since May\n` });
    expect([list.permits(ANN.did), list.permits(BOB.did)]).toEqual([false, true]);
  });

  it('an access list permits only agents on the allow-list that are not banned', () => {
    const { list } = listOf({ allow: `${ANN.did}\n${BOB.did}`, ban: BOB.did });
    expect([list.permits(ANN.did), list.permits(BOB.did), list.permits(new Signer().did)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('an access list reports the lengths of reloaded lists, and whether the reload succeeded', () => {
    const { list, counts, problems, folder } = listOf({ ban: '' });
    expect([list.isRead, counts]).toEqual([true, []]);
    writeFileSync(join(folder, 'ban'), `${ANN.did}\n${BOB.did}\n`);
    list.reload({ isForced: false });
    list.reload({ isForced: false });
    expect(counts).toEqual([{ allowed: null, banned: 2 }]);
    rmSync(join(folder, 'ban'));
    list.reload({ isForced: false });
    expect([list.isRead, counts.length, problems.length]).toEqual([false, 1, 1]);
    writeFileSync(join(folder, 'ban'), `${ANN.did}\n${BOB.did}\n`);
    list.reload({ isForced: false });
    expect([list.isRead, counts.length]).toEqual([true, 2]);
  });

  it('an access list is reloaded on request, and keeps its former content if the new file is invalid', () => {
    const { list, problems, folder } = listOf({ ban: '' });
    writeFileSync(join(folder, 'ban'), `${ANN.did}\n`);
    list.reload({ isForced: false });
    expect(list.permits(ANN.did)).toBe(false);
    writeFileSync(join(folder, 'ban'), 'did:key:nonsense\n');
    list.reload({ isForced: true });
    rmSync(join(folder, 'ban'));
    list.reload({ isForced: true });
    expect(list.permits(ANN.did)).toBe(false);
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('ban, line 1: not a did:key'),
      expect.stringContaining('cannot read the access list'),
    ]);
  });

  it('an access list reports an invalid file once, and again after each requested reload', () => {
    const { list, problems, folder } = listOf({ ban: '' });
    writeFileSync(join(folder, 'ban'), 'did:key:nonsense\n');
    for (let check = 0; check < 10; check++) list.reload({ isForced: false });
    expect(problems).toHaveLength(1);
    list.reload({ isForced: true });
    expect(problems).toHaveLength(2);
  });

  it('a missing or invalid access list prevents the start', () => {
    expect(() => listOf({ ban: 'nonsense' })).toThrow('line 1');
    const missing = { allowFile: '/nowhere/allow', banFile: undefined, onProblem: () => {} };
    expect(() => new AccessList(missing)).toThrow('cannot read the access list /nowhere/allow: ENOENT');
  });
});

describe('an edit of an access list', () => {
  it('an edit of an access list adds a DID once, removes it, and keeps everything else', async () => {
    const path = join(temporaryFolder(), 'ban');
    const text = `# spam\n\n${ANN.did} # since May\r\n# end`;
    writeFileSync(path, text);
    chmodSync(path, 0o640);
    expect([await editAccessList(path, BOB.did, true), await editAccessList(path, BOB.did, true)]).toEqual([
      true,
      false,
    ]);
    expect(readFileSync(path, 'utf8')).toBe(`${text}\n${BOB.did}\n`);
    expect([await editAccessList(path, ANN.did, false), await editAccessList(path, ANN.did, false)]).toEqual([
      true,
      false,
    ]);
    expect(readFileSync(path, 'utf8')).toBe(`# spam\n\n# end\n${BOB.did}\n`);
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  it('an edit of an access list takes effect in the service, and leaves no other file', async () => {
    const { list, problems, folder } = listOf({ ban: '' });
    await editAccessList(join(folder, 'ban'), ANN.did, true);
    list.reload({ isForced: false });
    expect(list.permits(ANN.did)).toBe(false);
    await editAccessList(join(folder, 'ban'), ANN.did, false);
    list.reload({ isForced: false });
    expect([list.permits(ANN.did), problems, readdirSync(folder)]).toEqual([true, [], ['ban']]);
  });

  it('an edit of an access list creates a list that only its owner can read, and changes the target of a symbolic link', async () => {
    const folder = temporaryFolder();
    const [path, link] = [join(folder, 'allow'), join(folder, 'link')];
    expect(await editAccessList(path, ANN.did, true)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    symlinkSync(path, link);
    expect(await editAccessList(link, BOB.did, true)).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe(`${ANN.did}\n${BOB.did}\n`);
    expect(readdirSync(folder)).toEqual(['allow', 'link']);
  });

  it('an edit of an access list is rejected if the list is invalid or missing, or another edit is in progress', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'ban');
    await expect(editAccessList(path, ANN.did, false)).rejects.toThrow(`cannot read the access list ${path}: ENOENT`);
    writeFileSync(path, 'nonsense\n');
    await expect(editAccessList(path, ANN.did, true)).rejects.toThrow('line 1: not a did:key');
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['nonsense\n', ['ban']]);
    writeFileSync(`${path}.lock`, '');
    await expect(editAccessList(path, ANN.did, true)).rejects.toThrow(
      `${path}.lock exists: another edit is in progress`,
    );
    expect(readdirSync(folder)).toEqual(['ban', 'ban.lock']);
  });
});

describe('a banned agent', () => {
  it('a banned agent may not register, create or join, but may finish the chambers that it has joined', async () => {
    const banned = join(temporaryFolder(), 'ban');
    writeFileSync(banned, '');
    const { service, by } = await withAgent({ settings: { BAN_LIST_FILE: banned } });
    const joined = await openChamber(service, [by]);
    const other = await openChamber(service, [await service.agent()]);
    writeFileSync(banned, `${by.did}\n${BOB.did}\n`);
    service.composed.access.reload({ isForced: true });
    const refused = [
      await service.request('POST', '/register', { body: registrationOf(BOB) }),
      await service.request('POST', '/chambers', {
        by,
        body: { name: 'Test', ...deadlinesFrom(service.clock.read()) },
      }),
      await service.request('POST', `/chambers/${other}/join`, { by }),
    ];
    expect(refused.map(({ status, body }) => [status, body.error])).toEqual(
      refused.map(() => [403, 'FORUM_ERR_FORBIDDEN']),
    );
    const { deadlines } = await service.must('GET', `/chambers/${joined}`);
    service.clock.set(Date.parse(deadlines.proposalDeadline));
    await service.must('POST', `/chambers/${joined}/debate`, { by, body: { comment: 'still here' } });
  });
});

// Who may register, create and join, by files that the operator edits while the service runs.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AccessList } from '../src/access-list.ts';
import { deadlinesFrom, openChamber } from './kit/chambers.ts';
import { House, registrationOf } from './kit/house.ts';
import { Signer } from './kit/signer.ts';
import { atEnd, temporaryFolder } from './kit/temporary.ts';

const [ANN, BOB] = [new Signer(), new Signer()];

function listOf(files: { readonly allow?: string; readonly ban?: string }) {
  const folder = temporaryFolder();
  const path = (name: 'allow' | 'ban') => (files[name] === undefined ? undefined : join(folder, name));
  for (const name of ['allow', 'ban'] as const)
    if (files[name] !== undefined) writeFileSync(join(folder, name), files[name]);
  const problems: Error[] = [];
  const list = new AccessList({
    allowFile: path('allow'),
    banFile: path('ban'),
    onProblem: (error) => problems.push(error),
  });
  atEnd(async () => list.close());
  return { list, problems, folder };
}

describe('an access list', () => {
  it('permits everybody without files', () => {
    expect(listOf({}).list.permits(ANN.did)).toBe(true);
  });

  it('permits all but the banned, comments and blank lines aside', () => {
    const { list } = listOf({ ban: `# spam\n\n${ANN.did} # since May\n` });
    expect([list.permits(ANN.did), list.permits(BOB.did)]).toEqual([false, true]);
  });

  it('permits only those on an allow-list, and no banned one among them', () => {
    const { list } = listOf({ allow: `${ANN.did}\n${BOB.did}`, ban: BOB.did });
    expect([list.permits(ANN.did), list.permits(BOB.did), list.permits(new Signer().did)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('is read again when asked, and stays as it was when the new file is wrong', () => {
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

  it('fails the start when a file is missing or wrong', () => {
    expect(() => listOf({ ban: 'nonsense' })).toThrow('line 1');
    const missing = { allowFile: '/nowhere/allow', banFile: undefined, onProblem: () => {} };
    expect(() => new AccessList(missing)).toThrow('cannot read the access list /nowhere/allow: ENOENT');
  });
});

describe('a banned agent', () => {
  it('may not register, create or join, and may finish what it joined', async () => {
    const banned = new Set<string>();
    const house = new House({ permits: (did) => !banned.has(did) });
    const by = await house.agent();
    const joined = await openChamber(house, [by]);
    const other = await openChamber(house, [await house.agent()]);
    banned.add(by.did).add(BOB.did);
    const refused = [
      await house.request('POST', '/register', { body: registrationOf(BOB) }),
      await house.request('POST', '/chambers', { by, body: { name: 'Test', ...deadlinesFrom(house.clock.read()) } }),
      await house.request('POST', `/chambers/${other}/join`, { by }),
    ];
    expect(refused.map(({ status, body }) => [status, body.error])).toEqual(
      refused.map(() => [403, 'FORUM_ERR_FORBIDDEN']),
    );
    const { deadlines } = await house.must('GET', `/chambers/${joined}`);
    house.clock.set(Date.parse(deadlines.proposalDeadline));
    await house.must('POST', `/chambers/${joined}/debate`, { by, body: { comment: 'still here' } });
  });
});

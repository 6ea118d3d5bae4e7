import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { Agent, folderStore } from '../../src/client/index.ts';
import { seedFromFile } from '../../src/client/stores.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const SERVICE = 'http://service.test';

let folder: string;
let keyFile: string;
beforeEach(() => {
  folder = temporaryFolder();
  keyFile = join(folder, 'deep', 'agent.json');
});

describe('a key file', () => {
  it('a key file is readable by its owner only, and always loads the same agent', async () => {
    const made = await Agent.fromKeyFile(SERVICE, keyFile);
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    const again = await Agent.fromKeyFile(SERVICE, keyFile);
    expect(again.did).toBe(made.did);
    expect(JSON.parse(await readFile(keyFile, 'utf8'))).toEqual({
      did: made.did,
      seed: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    expect(await readdir(join(folder, 'deep'))).toEqual(['agent.json']);
  });

  it('a key file created by several processes at once has one agent', async () => {
    const made = await Promise.all(Array.from({ length: 8 }, () => Agent.fromKeyFile(SERVICE, keyFile)));
    expect(new Set(made.map(({ did }) => did)).size).toBe(1);
  });

  it('a key file that others can read is rejected', async () => {
    await Agent.fromKeyFile(SERVICE, keyFile);
    await chmod(keyFile, 0o640);
    await expect(Agent.fromKeyFile(SERVICE, keyFile)).rejects.toMatchObject({ code: 'CLIENT_ERR_KEY' });
  });

  it.runIf(process.platform !== 'win32')('a key file is accepted on platforms without modes', async () => {
    await Agent.fromKeyFile(SERVICE, keyFile);
    // The mode that Node reports for every file on Windows.
    await chmod(keyFile, 0o666);
    expect(await seedFromFile(keyFile, 'win32')).toHaveLength(32);
    await expect(seedFromFile(keyFile, 'linux')).rejects.toMatchObject({ code: 'CLIENT_ERR_KEY' });
  });

  it('the error for an unreadable key file names the file', async () => {
    await writeFile(join(folder, 'deep'), 'not a folder');
    const loading = Agent.fromKeyFile(SERVICE, keyFile);
    await expect(loading).rejects.toMatchObject({
      code: 'CLIENT_ERR_STORAGE',
      retryable: true,
      detail: expect.stringContaining(keyFile),
    });
  });

  it('a key file without a valid seed is rejected', async () => {
    const path = join(folder, 'other.json');
    await writeFile(path, '{"seed":"0x12"}', { mode: 0o600 });
    await expect(Agent.fromKeyFile(SERVICE, path)).rejects.toMatchObject({ code: 'CLIENT_ERR_KEY' });
  });
});

describe('a folder of commitments', () => {
  const commitment = `0x${'cd'.repeat(32)}` as const;
  const opening = {
    chamberId: 1,
    did: 'did:key:z',
    allocations: [{ ideaId: 'idea-1', bps: 1 }],
    salt: '0x01',
  } as const;

  it('a folder of commitments stores openings by commitment, readable by their owner only', async () => {
    const path = join(folder, 'openings');
    await folderStore(path).add(commitment, opening);
    expect(await folderStore(path).find(commitment)).toEqual(opening);
    expect(await folderStore(path).find(`0x${'00'.repeat(32)}`)).toBeUndefined();
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect((await stat(join(path, `${commitment}.json`))).mode & 0o777).toBe(0o600);
  });

  it('a folder of commitments keeps no temporary files, and the error names a damaged opening', async () => {
    const path = join(folder, 'openings');
    await folderStore(path).add(commitment, opening);
    expect(await readdir(path)).toEqual([`${commitment}.json`]);
    await writeFile(join(path, `${commitment}.json`), '{"chamberId":1,"did"');
    await expect(folderStore(path).find(commitment)).rejects.toMatchObject({
      code: 'CLIENT_ERR_COMMITMENT',
      detail: expect.stringContaining(`${commitment}.json is damaged`),
    });
  });

  it('the error for an unwritable folder of commitments names the file', async () => {
    const path = join(folder, 'openings');
    await writeFile(path, 'not a folder');
    await expect(folderStore(path).add(commitment, opening)).rejects.toMatchObject({
      code: 'CLIENT_ERR_STORAGE',
      detail: expect.stringContaining(`${path}/${commitment}.json`),
    });
  });

  it('a folder of commitments never replaces an opening', async () => {
    const store = folderStore(join(folder, 'openings'));
    await store.add(commitment, opening);
    await expect(store.add(commitment, { ...opening, salt: '0x02' })).rejects.toMatchObject({
      code: 'CLIENT_ERR_STORAGE',
      detail: expect.stringContaining('EEXIST'),
    });
    expect(await store.find(commitment)).toEqual(opening);
  });
});

// The log records the keys that sign for it: no node starts with other keys or creates others.
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createKeyFile, readAnyKeyFile } from '../../src/keys/key-file.ts';
import { run as runCli } from '../cli/run.ts';
import { run } from '../kit/service.ts';
import { temporaryFolder } from '../kit/temporary.ts';

type Database = Readonly<Record<string, string>>;

const newFile = () => join(temporaryFolder(), 'keys.json');

function newKeys(database: Database, file: string, ...options: readonly string[]) {
  return runCli(['admin', 'new-keys', `--file=${file}`, ...options], database);
}

async function startAndStop(database: Database, file: string): Promise<void> {
  await (await run({ ...database, SERVICE_KEY_FILE: file })).stop();
}

/** A log whose keys are in the file `first`. */
async function logWithKeys(open: () => Database | Promise<Database>) {
  const [database, first, second] = [await open(), newFile(), newFile()];
  expect(await newKeys(database, first)).toMatchObject({ exitCode: 0 });
  return { database, first, second };
}

/** `open` returns the settings of an empty database. */
export function describeKeys(open: () => Database | Promise<Database>): void {
  it('a log gets no keys from a second node, neither before nor after the first start', async () => {
    const { database, first, second } = await logWithKeys(open);
    const refused = { exitCode: 1, err: expect.stringContaining('not found, and the log has keys: put the file back') };
    expect(await newKeys(database, second)).toMatchObject(refused);
    await startAndStop(database, first);
    expect(await newKeys(database, second)).toMatchObject(refused);
    expect(existsSync(second)).toBe(false);
  });

  it('a log does not start with other keys in its name, and new-keys does not add to these', async () => {
    const { database, first, second } = await logWithKeys(open);
    await createKeyFile(second, readAnyKeyFile(first)?.logId ?? '', Date.now());
    const others =
      /lacks keys of the log .*: copy the key file of the node that has them; if they are lost, run chambers/;
    await expect(startAndStop(database, second)).rejects.toThrow(others);
    const { exitCode, err } = await newKeys(database, second);
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: expect.stringMatching(others) });
    copyFileSync(first, second);
    await startAndStop(database, second);
  });

  it('a log has added keys from the next start on, and then rejects a file without them', async () => {
    const { database, first, second } = await logWithKeys(open);
    copyFileSync(first, second);
    expect(await newKeys(database, first)).toMatchObject({ exitCode: 0 });
    await startAndStop(database, second);
    await startAndStop(database, first);
    await expect(startAndStop(database, second)).rejects.toThrow('lacks keys of the log');
  });

  it('a log accepts replacements for lost keys on request', async () => {
    const { database, first, second } = await logWithKeys(open);
    copyFileSync(first, second);
    await newKeys(database, first);
    await startAndStop(database, first);
    rmSync(first);
    expect(await newKeys(database, second, '--lost')).toMatchObject({ exitCode: 0 });
    await startAndStop(database, second);
    rmSync(second);
    expect(await newKeys(database, first, '--lost')).toMatchObject({ exitCode: 0 });
  });

  it('a log of an earlier release has the keys of its first start', async () => {
    const [database, first, second] = [await open(), newFile(), newFile()];
    await startAndStop(database, first);
    await createKeyFile(second, readAnyKeyFile(first)?.logId ?? '', Date.now());
    await expect(startAndStop(database, second)).rejects.toThrow('lacks keys of the log');
  });
}

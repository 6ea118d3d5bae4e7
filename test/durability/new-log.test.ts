// A database restored to a state before the published checkpoint: the service does not start on it, but can continue it as a new log.
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { backupDatabase } from '../../src/log/sqlite/backup.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { parseVerifierKey } from '../../src/tlog/note.ts';
import { openCheckpoint } from '../../src/tlog/proof.ts';
import { run as runCli } from '../cli/run.ts';
import { newAgent, type Running, run } from '../kit/service.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';

interface Log {
  readonly logId: string;
  readonly prefix: string;
  readonly checkpointKey: string;
}

async function logOf({ url }: Running): Promise<Log> {
  return ((await (await fetch(url)).json()) as { readonly log: Log }).log;
}

/** Resolves to a checkpoint over this number of lines. */
async function published({ url }: Running, { prefix, checkpointKey }: Log, size: number): Promise<string> {
  const key = parseVerifierKey(checkpointKey) ?? expect.fail('no verifier key');
  return eventually(async () => {
    const note = await (await fetch(url + prefix + '/checkpoint')).text();
    expect(openCheckpoint(note, key)?.size).toBe(size);
    return note;
  }, 20_000);
}

it('the service does not start on an old copy, and continues it as a new log that publishes the old log’s last checkpoint', async () => {
  const path = temporaryDatabase();
  const settings = { DATABASE_PATH: path };
  const first = await run(settings);
  await newAgent(first);
  const old = await logOf(first);
  await published(first, old, 1);
  await first.stop();
  copyFileSync(path, `${path}.old`);
  const second = await run(settings);
  await newAgent(second);
  await newAgent(second);
  const last = await published(second, old, 3);
  await second.stop();

  rmSync(`${path}-wal`, { force: true });
  rmSync(`${path}-shm`, { force: true });
  copyFileSync(`${path}.old`, path);
  await expect(run(settings)).rejects.toThrow(
    /^the log has 1 lines, and the checkpoint .*\.checkpoint was published over 3: restore a newer copy of the database, or continue as another log: chambers new-log/,
  );
  const { exitCode, out } = await runCli(['new-log', '--json'], settings);
  expect(exitCode).toBe(0);
  const renewed = JSON.parse(out);
  expect(renewed).toMatchObject({ copiedFrom: old.logId, formerLog: old.logId, formerSize: 3 });
  expect(renewed.keyFile).toMatch(`service-keys-${renewed.logId}.json`);

  const third = await run(settings);
  const log = await logOf(third);
  expect(log.logId).toBe(renewed.logId);
  expect(await (await fetch(`${third.url}/log/${old.logId}/checkpoint`)).text()).toBe(last);
  await newAgent(third);
  await published(third, log, 2);
  const { keys } = (await (await fetch(`${third.url}/.well-known/http-message-signatures-directory`)).json()) as {
    readonly keys: readonly { readonly x: string }[];
  };
  const oldKey = parseVerifierKey(old.checkpointKey)?.publicKey ?? new Uint8Array();
  expect(keys.map(({ x }) => x)).toContain(Buffer.from(oldKey).toString('base64url'));
});

it('the service does not accept an empty database in place of a lost log', async () => {
  const path = temporaryDatabase();
  const settings = { DATABASE_PATH: path, SERVICE_KEY_FILE: `${path}.keys.json` };
  const first = await run(settings);
  await newAgent(first);
  await first.stop();
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
  await expect(run(settings)).rejects.toThrow(/it has the keys of log .*: restore the lost database/);
  // Startup created no keys.
  expect(existsSync(path)).toBe(false);
  await openSqliteStore(path).close();
  await expect(run(settings)).rejects.toThrow(/it has the keys of log .*: restore the lost database/);
  expect(await runCli(['new-log'], settings)).toEqual({
    exitCode: 2,
    out: '',
    err: 'usage: the database has no lines: put a copy of the log in its place first',
  });
});

it('the new-log command changes nothing if the keys cannot be written', async () => {
  const path = temporaryDatabase();
  const first = await run({ DATABASE_PATH: path });
  await newAgent(first);
  const { logId } = await logOf(first);
  await first.stop();
  const keyFile = join(dirname(path), `service-keys-${logId}.json`);
  const settings = { DATABASE_PATH: path, SERVICE_KEY_FILE: join(dirname(path), 'missing', 'keys.json') };
  expect((await runCli(['new-log', `--key-file=${keyFile}`], settings)).exitCode).toBe(1);
  const again = await run({ DATABASE_PATH: path });
  expect(await logOf(again)).toMatchObject({ logId });
});

it('the service does not create new keys for a log that has others, such as a backup or a log without its key file', async () => {
  const path = temporaryDatabase();
  const first = await run({ DATABASE_PATH: path });
  await newAgent(first);
  const { logId } = await logOf(first);
  const copy = join(dirname(path), 'copy.db');
  await backupDatabase(path, copy);
  await first.stop();
  const refusal =
    /service-keys-[0-9a-f]{32}\.json not found, and the log has keys: put the file back, or copy that of another node; if the database is a copy, run chambers new-log, /;
  await expect(run({ DATABASE_PATH: copy })).rejects.toThrow(refusal);
  expect((await runCli(['new-log'], { DATABASE_PATH: copy })).exitCode).toBe(0);
  await (await run({ DATABASE_PATH: copy })).stop();

  const keyFile = join(dirname(path), `service-keys-${logId}.json`);
  renameSync(keyFile, `${keyFile}.away`);
  await expect(run({ DATABASE_PATH: path })).rejects.toThrow(refusal);
  expect(existsSync(keyFile)).toBe(false);
  expect((await runCli(['admin', 'new-keys', '--lost', `--file=${keyFile}`], { DATABASE_PATH: path })).exitCode).toBe(
    0,
  );
  await run({ DATABASE_PATH: path });
});

// A service on a restored copy of a log with withheld texts is sound for every reader.
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { auditFile, auditService } from '../../src/audit/audit.ts';
import { ForumClient, type VerifiedLine } from '../../src/client/index.ts';
import { backupDatabase } from '../../src/log/sqlite/backup.ts';
import { Mirror } from '../../src/mirror/mirror.ts';
import { run as runCli } from '../cli/run.ts';
import { debating, type Running, run } from '../kit/service.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';

const SECRET = 'Rosebud-of-Xanadu-1941';

async function covered({ service }: Running): Promise<void> {
  const { log, tree } = service.forum.store;
  await eventually(async () => expect((await tree.checkpoint())?.size).toBe(await log.lastPlace()), 20_000);
}

const policy = {};

/** What the auditor, the client, the mirror and the list of stubs report about the service. */
async function readers(running: Running) {
  const { service, url, clock } = running;
  await covered(running);
  const { logId } = service.forum.store.log;
  const { chambers } = await auditService(url, { policy, now: clock.read });
  const lines: VerifiedLine[] = [];
  for await (const line of new ForumClient(url).history(1)) lines.push(line);
  const file = join(temporaryFolder(), 'chamber.ndjson');
  writeFileSync(
    file,
    await (await fetch(`${url}/chambers/1/events`, { headers: { accept: 'application/x-ndjson' } })).text(),
  );
  const exported = await auditFile(file, { policy, now: clock.read });
  const mirror = await Mirror.open({ url, folder: temporaryFolder(), keepsOriginals: false });
  const mirrored = await mirror.step().finally(() => mirror.close());
  const stubs = (await (await fetch(`${url}/log/${logId}/withheld`)).text()).trimEnd().split('\n');
  return {
    verdicts: [...chambers, exported].map(({ verdict }) => verdict),
    sentences: [...chambers, exported].map(({ sentence }) => sentence),
    leaves: lines.map(({ leaf }) => leaf),
    mirrored: mirrored.added,
    stubs: stubs.map((stub) => JSON.parse(stub)),
    text: readFileSync(file, 'utf8'),
  };
}

async function withheldService() {
  const [path, list] = [temporaryDatabase(), join(temporaryFolder(), 'withhold')];
  writeFileSync(list, '');
  const settings = { DATABASE_PATH: path, WITHHOLD_FILE: list };
  const running = await run(settings);
  const { debate } = await debating(running);
  const eventId = await debate(SECRET);
  await debate('plain');
  const withhold = async () => {
    writeFileSync(list, `1:${eventId} law\n`);
    running.service.reloadLists();
    const { withholding } = running.service.forum.store;
    await eventually(() => expect(withholding).toMatchObject({ through: 1, erasure: { isPending: false } }), 10_000);
  };
  return { running, settings, path, withhold };
}

/** Replaces the database by the copy, and renews its logId. */
async function restore(settings: { readonly DATABASE_PATH: string }, backup: string): Promise<void> {
  const { DATABASE_PATH: path } = settings;
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
  copyFileSync(backup, `${path}.new`);
  renameSync(`${path}.new`, path);
  expect(await runCli(['new-log', '--json'], settings)).toMatchObject({ exitCode: 0 });
}

it.each(['before the withholding', 'after the withholding'])(
  'a service restored from a backup made %s is sound for the auditor, the client and the mirror',
  async (when) => {
    const { running, settings, withhold } = await withheldService();
    const backup = temporaryDatabase();
    if (when.startsWith('before')) await backupDatabase(settings.DATABASE_PATH, backup);
    await withhold();
    if (when.startsWith('after')) await backupDatabase(settings.DATABASE_PATH, backup);
    const older = temporaryDatabase();
    copyFileSync(backup, older);
    const before = await readers(running);
    const { logId } = running.service.forum.store.log;
    const from = `${running.url}/log/${logId}/withheld`;
    expect(await runCli(['withhold-in', backup, `--from=${from}`])).toMatchObject({ exitCode: 0 });
    await running.stop();
    await restore(settings, backup);

    const restored = await run(settings, running.clock);
    const after = await readers(restored);
    expect(before.verdicts).toEqual(['verified', 'verified']);
    expect(after).toMatchObject({ verdicts: before.verdicts, sentences: before.sentences, leaves: before.leaves });
    expect(after.mirrored).toBe(before.mirrored);
    expect(after.text).not.toContain(SECRET);
    const [formerStub] = before.stubs;
    const { log, signature } = after.stubs[0].withheld;
    expect(log).toBe(restored.service.forum.store.log.logId);
    expect(after.stubs).toEqual([{ ...formerStub, withheld: { ...formerStub.withheld, log, signature } }]);

    const list = `${restored.url}/log/${log}/withheld`;
    const counts = when.startsWith('before')
      ? { withheld: 1, alreadyWithheld: 0 }
      : { withheld: 0, alreadyWithheld: 1 };
    const { out } = await runCli(['withhold-in', older, `--from=${list}`, '--json']);
    expect(JSON.parse(out)).toEqual({ ...counts, missing: 0 });

    await restored.stop();
    const again = await run(settings, running.clock);
    expect(await readers(again)).toMatchObject({ verdicts: before.verdicts, stubs: after.stubs });
  },
);

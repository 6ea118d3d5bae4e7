// A log moved to PostgreSQL, and the operators' commands there.
import { expect, it } from 'vitest';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { run } from '../../cli/run.ts';
import { Commands, linesOf } from '../../kit/commands.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';

it('a log moved to PostgreSQL has the same lines; fsck names its changed rows, and rebuild restores them', async () => {
  const [path, url] = [temporaryDatabase(), await temporaryPostgres()];
  const source = new TestService({ store: openSqliteStore(path) });
  const commands = new Commands(3);
  for (let step = 0; step < 50; step++) await commands.step([source]);
  const lines = await linesOf(source, commands.streams);
  await source.publish();
  await source.close();
  expect(await run(['copy', path, url])).toMatchObject({ exitCode: 0 });

  const copy = new TestService({ store: await openStore(url), clock: source.clock });
  expect(await linesOf(copy, commands.streams)).toBe(lines);
  await copy.publish();
  await copy.close();
  expect(await run(['fsck', url, '--json'])).toMatchObject({ exitCode: 0 });
  await execute(url, "ALTER TABLE events DISABLE TRIGGER ALL; UPDATE chambers SET listing = '{}' WHERE chamber_id = 1");
  const { exitCode, out } = await run(['fsck', url, '--json']);
  expect([exitCode, JSON.parse(out).found]).toEqual([
    3,
    [expect.objectContaining({ stream: 1, problem: expect.stringContaining('table chambers') })],
  ]);
  expect(await run(['rebuild', url])).toMatchObject({ exitCode: 0 });
  expect(await run(['fsck', url, '--json'])).toMatchObject({ exitCode: 0 });
});

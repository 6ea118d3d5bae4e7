// fsck, rebuild and renew-id on a log in PostgreSQL.
import { describe, expect, it } from 'vitest';
import { copyLog } from '../../../src/log/open-log.ts';
import { run } from '../../cli/run.ts';
import { faultsOf } from '../../durability/log-book.ts';
import { openChamber } from '../../kit/chambers.ts';
import { connect, execute, openStore, ownDatabase, temporaryPostgres } from '../../kit/postgres.ts';
import { TestService } from '../../kit/test-service.ts';
import { describeMaintenance, writtenLog } from '../maintenance.ts';

async function move(path: string): Promise<string> {
  const url = await temporaryPostgres();
  await copyLog(path, url);
  return url;
}

describeMaintenance({
  move,
  async tamper(url, sql, ...values) {
    const client = await connect(url);
    await client.query('ALTER TABLE events DISABLE TRIGGER ALL');
    return (await client.query(sql, [...values])).rows;
  },
  toColumn: (line) => Buffer.from(line),
  hasPositions: false,
});

describe('fsck of a database', () => {
  it('the fsck command reports nothing for a sound database with running nodes', async () => {
    const url = await temporaryPostgres();
    const service = new TestService({ store: await openStore(url) });
    await openChamber(service, [await service.agent()]);
    const { exitCode, out } = await run(['fsck'], { DATABASE_URL: url });
    expect({ exitCode, out }).toEqual({ exitCode: 0, out: expect.stringMatching(/^faults +0$/m) });
  });

  it.each([
    ['UPDATE events SET at = at + 1', "not the line's ts"],
    ['UPDATE places SET place = -1', 'place'],
    ['DELETE FROM places', 'place'],
  ])('the fsck command reports the fault after %s', async (sql, problem) => {
    const url = await move(await writtenLog());
    await execute(url, `ALTER TABLE events DISABLE TRIGGER ALL; ${sql} WHERE stream = '1' AND event_id = 2`);
    const { exitCode, out } = await run(['fsck', url, '--json']);
    const [first] = JSON.parse(out).found;
    expect(first).toMatchObject({ stream: 1, eventId: 2, problem: expect.stringContaining(problem) });
    expect(exitCode).toBe(3);
  });
});

describe('a restored database', () => {
  it('a restored database gets its own logId, so that readers of the original notice', async () => {
    const original = await ownDatabase();
    const service = new TestService({ store: await openStore(original) });
    const id = await openChamber(service, [await service.agent()]);
    await service.close();
    const restored = await ownDatabase(new URL(original).pathname.slice(1));
    const { out } = await run(['renew-id', restored, '--json']);
    expect(JSON.parse(out)).toEqual({ logId: expect.stringMatching(/^[0-9a-f]{32}$/), copiedFrom: service.log.logId });
    const other = new TestService({ store: await openStore(restored) });
    expect(other.log.logId).toBe(JSON.parse(out).logId);
    const { headers } = await other.request('GET', `/chambers/${id}/merkle-preview`);
    expect(headers.get('log-id')).toBe(other.log.logId);
    expect(await faultsOf(restored)).toEqual([]);
  });
});

describe('a command for SQLite files', () => {
  it.each([
    [['backup', 'x.db'], /back up PostgreSQL with pg_dump/],
    [['erase', 'did:key:x'], /deploy\/README\.md has the statements/],
    [['fsck', '--repair-tail'], /--repair-tail is for SQLite files/],
  ])('the command %j explains in one sentence that it is for SQLite files', async (words, message) => {
    const { exitCode, err } = await run(words, { DATABASE_URL: 'postgres://db.example.org/chambers' });
    expect({ exitCode, err }).toEqual({ exitCode: 2, err: expect.stringMatching(message) });
    expect(err.split('\n')).toHaveLength(1);
  });
});

// fsck, rebuild and renew-id on a log in PostgreSQL, through the command line.
import { beforeEach, describe, expect, it } from 'vitest';
import { run } from '../../cli/run.ts';
import { openChamber } from '../../kit/chambers.ts';
import type { TestClock } from '../../kit/clock.ts';
import { Commands } from '../../kit/commands.ts';
import { execute, openStore, ownDatabase, temporaryPostgres } from '../../kit/postgres.ts';
import { registrationOf, TestService } from '../../kit/test-service.ts';

let url: string;
let clock: TestClock;
beforeEach(async () => {
  url = await temporaryPostgres();
  const service = new TestService({ store: await openStore(url) });
  clock = service.clock;
  const commands = new Commands(5);
  for (let step = 0; step < 50; step++) await commands.step([service]);
  // A registration without an e-mail address is kept whole.
  const by = await service.agent();
  const { operatorEmail: _, ...registration } = registrationOf(by);
  await service.must('POST', '/register', { by, body: { ...registration, personality: { style: 'new' } } });
  await service.log.readAll(0, 1);
  await service.publish();
  await service.close();
});

const fsck = async (database = url) => {
  const { exitCode, out } = await run(['fsck', database, '--json']);
  return {
    exitCode,
    found: JSON.parse(out).found as readonly { stream: unknown; eventId: unknown; problem: string }[],
  };
};

const change = (sql: string) => execute(url, `ALTER TABLE events DISABLE TRIGGER ALL; ${sql}`);

describe('fsck', () => {
  it('finds nothing in a sound log, while its nodes run', async () => {
    const service = new TestService({ store: await openStore(url), clock });
    await openChamber(service, [await service.agent()]);
    expect(await fsck()).toEqual({ exitCode: 0, found: [] });
    expect((await run(['fsck'], { DATABASE_URL: url })).out).toMatch(/^faults +0$/m);
  });

  it.each([
    ["UPDATE events SET line = line || ' '::bytea WHERE stream = '1' AND event_id = 2", 1, 2, 'not in canonical form'],
    ["UPDATE events SET nodes = line WHERE stream = '1' AND event_id = 2", 1, 2, 'Merkle tree'],
    ["UPDATE events SET at = at + 1 WHERE stream = '1' AND event_id = 2", 1, 2, "not the line's ts"],
    ["UPDATE events SET line_crc = 1 WHERE stream = '1' AND event_id = 2", 1, 2, 'checksums'],
    ["DELETE FROM events WHERE stream = '1' AND event_id = 2", 1, 3, 'event_id is 3, not 2'],
    ["UPDATE places SET place = -1 WHERE stream = '1' AND event_id = 2", 1, 2, 'place'],
    ["DELETE FROM places WHERE stream = '1' AND event_id = 2", 1, 2, 'place'],
    [
      "UPDATE tiles SET hashes = '' WHERE level = 0",
      null,
      null,
      'table tiles does not match the log: run chambers rebuild',
    ],
    ['DELETE FROM tiles WHERE level = -1', null, null, 'table tiles'],
    ["UPDATE checkpoints SET note = ''", null, null, 'restore a backup, or go on as another log: chambers new-log'],
    ['UPDATE checkpoints SET size = size + 1', null, null, 'the stored checkpoint is no checkpoint of size'],
    ["UPDATE chambers SET listing = '{}' WHERE chamber_id = 1", 1, null, 'table chambers'],
    ['DELETE FROM members WHERE chamber_id = 1', 1, null, 'table members'],
    ["INSERT INTO turns VALUES (99, '{}')", 99, null, 'table turns'],
    ["INSERT INTO snapshots VALUES (99, 1, 2, '', '', 0)", 99, 1, 'table snapshots'],
    ["INSERT INTO contacts VALUES ('did:key:none', 'mail')", 'did:key:none', null, 'not in the log'],
    ["INSERT INTO registrations VALUES ('hash', 'did:key:none', 1, true)", 'did:key:none', 1, 'not in the log'],
  ])('finds what follows %s', async (sql, stream, eventId, problem) => {
    await change(sql);
    const { exitCode, found } = await fsck();
    expect(exitCode).toBe(3);
    expect(found[0]).toMatchObject({ stream, eventId, problem: expect.stringContaining(problem) });
  });

  it('finds a registration whose signature could be replayed', async () => {
    await change('DELETE FROM registrations WHERE NOT covers_email');
    const [fault] = (await fsck()).found;
    expect(fault?.problem).toBe('its signature is not in the table registrations');
  });
});

describe('rebuild', () => {
  const tables = ['chambers', 'ideas', 'members', 'turns', 'tiles'];
  const rows = () => Promise.all(tables.map((table) => execute(url, `SELECT * FROM ${table} ORDER BY 1, 2`)));

  it('makes the derived rows as they were', async () => {
    const before = await rows();
    await change(
      "DELETE FROM ideas; UPDATE members SET is_open = NOT is_open; UPDATE chambers SET listing = '{}'; DELETE FROM tiles WHERE level = 0",
    );
    expect((await fsck()).exitCode).toBe(3);
    expect((await run(['rebuild', url])).exitCode).toBe(0);
    expect(await rows()).toEqual(before);
    expect(await fsck()).toEqual({ exitCode: 0, found: [] });
  });

  it('changes nothing if lines were changed after they were published', async () => {
    const zeros = `${'A'.repeat(43)}=`;
    await change(
      `DELETE FROM turns; UPDATE checkpoints SET note = replace(note, split_part(note, E'\\n', 3), '${zeros}')`,
    );
    const before = await rows();
    expect((await run(['rebuild', url])).err).toMatch(
      /^failure: the first \d+ lines are not those that the checkpoint was published over: restore a backup/,
    );
    expect(await rows()).toEqual(before);
    expect((await fsck()).found).toContainEqual(
      expect.objectContaining({ stream: null, problem: expect.stringContaining('lines are not those') }),
    );
  });

  it('changes nothing if a line is broken', async () => {
    await change("DELETE FROM turns; UPDATE events SET line = line || ' '::bytea WHERE stream = '1' AND event_id = 2");
    const before = await rows();
    expect((await run(['rebuild', url])).err).toBe(
      'failure: event 2 of 1 is damaged: the line is not in canonical form',
    );
    expect(await rows()).toEqual(before);
  });
});

describe('a restored database', () => {
  it('gets a logId of its own, so that readers of the original notice', async () => {
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
    expect(await fsck(restored)).toEqual({ exitCode: 0, found: [] });
  });
});

describe('a command for files', () => {
  it.each([
    [['backup', 'x.db'], /pg_dump or its provider backs up a PostgreSQL database/],
    [['erase', 'did:key:x'], /deploy\/README\.md, has the statements/],
    [['fsck', '--repair-tail'], /--repair-tail is for SQLite files/],
  ])('%j says in one sentence that it is for SQLite files', async (words, message) => {
    const { exitCode, err } = await run(words, { DATABASE_URL: 'postgres://db.example.org/chambers' });
    expect({ exitCode, err }).toEqual({ exitCode: 2, err: expect.stringMatching(message) });
    expect(err.split('\n')).toHaveLength(1);
  });
});

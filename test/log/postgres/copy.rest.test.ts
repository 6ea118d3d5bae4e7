// Copies a log between stores: the bytes and the id stay the same, and there is one writer at a time.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { copyLog } from '../../../src/log/open-log.ts';
import { openPostgresStore } from '../../../src/log/postgres/store.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import type { Store } from '../../../src/log/store.ts';
import { faultsOf } from '../../durability/log-book.ts';
import { enterPhase, openChamber } from '../../kit/chambers.ts';
import { TestClock } from '../../kit/clock.ts';
import { Commands, linesOf } from '../../kit/commands.ts';
import {
  execute,
  holdMigrations,
  holdTable,
  migrationWaiters,
  openStore,
  ownDatabase,
  temporaryPostgres,
  waitersFor,
} from '../../kit/postgres.ts';
import { CLI } from '../../kit/programs.ts';
import { Signer } from '../../kit/signer.ts';
import { atEnd, temporaryDatabase, temporaryFolder } from '../../kit/temporary.ts';
import { registrationOf, TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';

/** Returns whether a copy is being written to this file. */
const hasDraft = (path: string) =>
  readdirSync(dirname(path)).some((name) => name.startsWith(basename(path)) && name.endsWith('.partial'));

const isUrl = (place: string) => place.startsWith('postgres:');

const open = async (place: string): Promise<Store> =>
  isUrl(place) ? openPostgresStore({ url: place, connectionsMax: 4 }) : openSqliteStore(place);

/** Writes a log of random moves, one chamber with this many debates, and a signed registration with an e-mail address. */
async function write(place: string, debates = 10) {
  const service = new TestService({ store: await open(place) });
  const commands = new Commands(3);
  for (let step = 0; step < 150; step++) await commands.step([service]);
  const by = new Signer();
  const registration = service.prepare('POST', '/register', { by, body: registrationOf(by) });
  const answer = await service.send(registration);
  const id = await openChamber(service, [by]);
  await enterPhase(service, id, 'DEBATE');
  const calls = Array.from({ length: debates }, (_, n) => ({ by, body: { comment: `${n}` } }));
  await Promise.all(calls.map((call) => service.must('POST', `/chambers/${id}/debate`, call)));
  await service.store.meta.remember('chain_id', '31337');
  const { clock } = service;
  const streams = [...commands.streams.filter((stream) => stream !== id), id, by.did];
  const shown = await show(service, streams);
  await service.close();
  return { clock, by, id, registration, answer, streams, shown };
}

/** Returns everything that must be equal on both sides. */
async function show(service: TestService, streams: readonly (number | string)[]) {
  const { log, lists, meta } = service.store;
  const proofs = streams.flatMap((stream) => {
    const path = `/chambers/${stream}`;
    return typeof stream === 'number'
      ? [`${path}/merkle-preview`, `${path}/events/1/proof`, `${path}/allocations`]
      : [];
  });
  return {
    logId: log.logId,
    chain: await meta.recall('chain_id'),
    lines: await linesOf(service, streams),
    order: (await log.readAll(0, 100)).ndjson.toString(),
    emails: await Promise.all(streams.map((stream) => lists.operatorEmail(`${stream}`))),
    proofs: await Promise.all(proofs.map(async (path) => (await service.request('GET', path)).body)),
    chambers: await service.must('GET', '/chambers?limit=200'),
    ideas: await lists.listGraduatedIdeas({ limit: 100, after: undefined }),
  };
}

type Written = Awaited<ReturnType<typeof write>>;

async function expectSame(
  place: string,
  { clock, by, id, registration, answer, streams, shown }: Written,
): Promise<void> {
  expect(await faultsOf(place)).toEqual([]);
  const own = new TestClock();
  own.set(clock.read());
  const service = new TestService({ store: await open(place), clock: own });
  expect(await show(service, streams)).toEqual(shown);
  const head = await service.log.lastEventId(by.did);
  expect(await service.send(registration)).toMatchObject({ status: 200, body: answer.body });
  expect(await service.log.lastEventId(by.did)).toBe(head);
  expect((await service.request('POST', `/chambers/${id}/pass`, { by })).status).toBe(200);
  await service.close();
}

const MOVED = /its log has moved to (postgres:\/\/|\/).*; if there is none, repeat chambers copy$/;

describe('a copy', () => {
  it('a copy from SQLite to PostgreSQL and back has the same bytes, and the source accepts no more events', async () => {
    const [first, second, third] = [temporaryDatabase(), await temporaryPostgres(), join(temporaryFolder(), 'back.db')];
    // Enough events for a snapshot.
    const written = await write(first, 1_000);
    const copied = await copyLog(first, second);
    expect(copied.movedTo).toMatch(/^postgres:\/\/127\.0\.0\.1:\d+\/postgres$/);
    await expect(open(first)).rejects.toThrow(MOVED);
    await expect(copyLog(first, join(temporaryFolder(), 'fork.db'))).rejects.toThrow(
      'has already moved to postgres://',
    );

    expect((await copyLog(second, third)).events).toBe(copied.events);
    await expect(open(second)).rejects.toThrow(MOVED);
    await expect(open(second)).rejects.not.toThrow('password');
    await expectSame(third, written);
  });

  it('a copy in PostgreSQL accepts moves, and has the order of all chambers', async () => {
    const [from, to] = [temporaryDatabase(), await temporaryPostgres()];
    const written = await write(from);
    await copyLog(from, to);
    await expectSame(to, written);
  });

  it('a copy to a target that is not empty fails, and leaves its source unchanged', async () => {
    const [from, taken] = [temporaryDatabase(), temporaryDatabase()];
    const url = await temporaryPostgres();
    for (const place of [from, taken, url]) await (await open(place)).close();
    await expect(copyLog(from, taken)).rejects.toThrow('already exists: name a new file');
    await expect(copyLog(from, url)).rejects.toThrow('is not empty: name another database, or drop its tables');
    await expect(copyLog(url, from)).rejects.toThrow('already exists');
    await expect(copyLog(join(temporaryFolder(), 'none.db'), url)).rejects.toThrow('cannot read the database');
    await expect(copyLog(await temporaryPostgres(), url)).rejects.toThrow('it contains no log');
    for (const place of [from, taken, url]) await (await open(place)).close();
  });

  it('a copy of a damaged line fails', async () => {
    const [from, to] = [await temporaryPostgres(), temporaryDatabase()];
    await write(from);
    await execute(
      from,
      `ALTER TABLE events DISABLE TRIGGER ALL; UPDATE events SET line = line || ' '::bytea WHERE stream = '1' AND event_id = 2`,
    );
    await expect(copyLog(from, to)).rejects.toThrow('event 2 of 1 fails its checksum');
    expect([existsSync(to), hasDraft(to)]).toEqual([false, false]);
    await (await open(from)).close();
  });

  it('a copy whose target never appeared can be repeated', async () => {
    const [from, url] = [temporaryDatabase(), await temporaryPostgres()];
    const { shown, streams, clock } = await write(from);
    await copyLog(from, url);
    // The new schema takes the name recorded in the mark, as if the first commit had been lost.
    const again = await temporaryPostgres();
    await copyLog(from, again);
    const service = new TestService({ store: await openStore(again), clock });
    expect((await show(service, streams)).lines).toBe(shown.lines);
    await expect(open(from)).rejects.toThrow(MOVED);
  });
});

const WAIT_MILLIS = 60_000;

/** Starts the copy in a process of its own, which can be killed. */
function startCopy(from: string, to: string) {
  const child = spawn(process.execPath, [CLI, 'copy', from, to], { stdio: 'ignore' });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  atEnd(kill);
  return { kill, exited };
}

describe('a killed copy', () => {
  it.each([
    ['PostgreSQL', temporaryPostgres],
    ['SQLite', async () => temporaryDatabase()],
  ])('a killed copy from PostgreSQL to %s leaves the log usable; a finished one does not', async (_, target) => {
    const [from, to] = [await temporaryPostgres(), await target()];
    const written = await write(from);
    const node = new TestService({ store: await openStore(from), clock: written.clock });
    const debate = (comment: string) =>
      node.request('POST', `/chambers/${written.id}/debate`, { by: written.by, body: { comment } });
    // When the copy waits for this table, it has written every event.
    const client = await holdTable(from, 'registrations');
    const { kill } = startCopy(from, to);
    await eventually(async () => expect(await waitersFor(from, 'registrations')).toBe(1), WAIT_MILLIS);
    if (!isUrl(to)) expect(hasDraft(to)).toBe(true);
    const blocked = debate('while it is copied');
    await kill();
    await client.end();
    expect((await blocked).status).toBe(200);
    if (!isUrl(to)) expect(existsSync(to)).toBe(false);

    await copyLog(from, to);
    expect((await debate('after the copy')).status).toBe(503);
    const copied = new TestService({ store: await open(to), clock: written.clock });
    expect(await linesOf(copied, written.streams)).toBe(await linesOf(node, written.streams));
    expect(await linesOf(copied, [written.id])).toContain('while it is copied');
  });

  it('a killed copy from SQLite leaves the file usable by its service', async () => {
    const [from, to] = [temporaryDatabase(), await ownDatabase()];
    const { shown, streams, clock } = await write(from);
    const client = await holdMigrations(to);
    const { kill } = startCopy(from, to);
    await eventually(async () => expect(await migrationWaiters(to)).toBe(1), WAIT_MILLIS);
    await expect(open(from)).rejects.toThrow('another process is using it');
    await kill();
    await client.end();
    const service = new TestService({ store: await open(from), clock });
    expect((await show(service, streams)).lines).toBe(shown.lines);
    await service.close();
    await copyLog(from, to);
    expect(await faultsOf(to)).toEqual([]);
  });
});

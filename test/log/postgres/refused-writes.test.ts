// The database rejects writes: nothing is written, moves get 503, /ready states the reason, and moves succeed once the cause is
// removed.
import type { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { Connections } from '../../../src/log/postgres/connections.ts';
import { CannotConnect, ConnectionLost, failureOf, logUnavailable } from '../../../src/log/postgres/database-errors.ts';
import { unavailable } from '../../../src/vocabulary/errors.ts';
import { enterPhase, openChamber } from '../../kit/chambers.ts';
import { execute, openStore, ownRole, temporaryPostgres } from '../../kit/postgres.ts';
import { atEnd } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';
import { entry, NONE } from '../entries.ts';

const RAISE = (code: string) => `
  CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '${code}'; END $$;
  CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()`;
const ALLOW = 'DROP TRIGGER refuse ON events';
describe('a database that rejects an append', () => {
  it.each([
    ['a missing right', RAISE('42501'), ALLOW, 'the database role lacks a permission, SQLSTATE 42501'],
    ['a full disk', RAISE('53100'), ALLOW, 'the database’s disk is full, SQLSTATE 53100'],
    ['an unknown error', RAISE('XX123'), ALLOW, 'SQLSTATE XX123'],
    ['a lost prepared statement', RAISE('26000'), ALLOW, 'a prepared statement is missing'],
  ])(
    'moves get 503 while the database rejects appends because of %s, and the process continues',
    async (_, refuse, allow, reason) => {
      const url = await temporaryPostgres();
      const service = new TestService({ store: await openStore(url) });
      const by = await service.agent();
      const id = await openChamber(service, [by]);
      await enterPhase(service, id, 'DEBATE');
      await execute(url, refuse);
      const debate = service.prepare('POST', `/chambers/${id}/debate`, { by, body: { comment: 'hm' } });
      const refused = {
        status: 503,
        body: { error: 'FORUM_ERR_UNAVAILABLE', detail: expect.stringContaining(reason) },
      };
      expect(await service.send(debate)).toMatchObject(refused);
      // Only the clock write could succeed.
      for (let round = 0; round < 2; round++) {
        await expect(service.forum.persistClock()).rejects.toThrow(reason);
        expect(await service.request('GET', '/ready')).toMatchObject(refused);
      }
      expect(await service.request('GET', `/chambers/${id}`)).toMatchObject({ status: 200 });
      await execute(url, allow);
      await service.forum.persistClock();
      expect(await service.request('GET', '/ready')).toMatchObject({ status: 200 });
      expect(await service.send(debate)).toMatchObject({ status: 200 });
      expect(await execute(url, "SELECT FROM events WHERE stream LIKE 'probe%'")).toEqual([]);
    },
  );

  it('readiness ends without a move once the log has moved or the role may not write its table', async () => {
    const url = await temporaryPostgres();
    const service = new TestService({ store: await openStore(url) });
    await service.forum.persistClock();
    const refusal = RAISE('55000').replace('FOR EACH ROW', 'FOR EACH STATEMENT');
    await execute(url, refusal);
    await expect(service.forum.persistClock()).rejects.toThrow('SQLSTATE 55000');
    expect((await service.request('GET', '/ready')).status).toBe(503);
    await execute(url, ALLOW);
    await service.forum.persistClock();
    expect((await service.request('GET', '/ready')).status).toBe(200);
  });

  it('a service still reads on a new connection if the role may no longer write', async () => {
    const { owner, role, url } = await ownRole();
    const { log } = await openStore(owner);
    await log.append({ entries: [entry(1, 1)] });
    await execute(owner, `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`);
    const store = await openStore(url);
    await execute(owner, `REVOKE INSERT ON events FROM ${role}`);
    await execute(owner, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`);
    await expect(store.log.append({ entries: [entry(1, 2)] })).rejects.toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
    expect(await store.log.lastEventId(1)).toBe(1);
    await execute(owner, `GRANT INSERT ON events TO ${role}`);
    expect(await store.log.append({ entries: [entry(1, 2)] })).toEqual(NONE);
  });

  it('moves that write to a table without the needed right are rejected until the right is granted', async () => {
    const { owner, role, url } = await ownRole();
    await (await openStore(owner)).close();
    await execute(owner, `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`);
    const service = new TestService({ store: await openStore(url) });
    const by = await service.agent();
    const id = await openChamber(service, [by]);
    await enterPhase(service, id, 'PROPOSAL');
    await execute(owner, `REVOKE INSERT ON ideas FROM ${role}`);
    const idea = { name: 'Idea', ticker: 'ONE', description: 'One' };
    const propose = service.prepare('POST', `/chambers/${id}/propose`, { by, body: idea });
    expect(await service.send(propose)).toMatchObject({ status: 503 });
    await expect(service.forum.persistClock()).rejects.toThrow('the database role lacks a permission');
    expect((await service.request('GET', '/ready')).status).toBe(503);
    await execute(owner, `GRANT INSERT ON ideas TO ${role}`);
    await service.forum.persistClock();
    expect((await service.request('GET', '/ready')).status).toBe(200);
    expect(await service.send(propose)).toMatchObject({ status: 200 });
  });
});

describe('a database error', () => {
  const plain = (message: string, code?: string) => Object.assign(new Error(message), { code });

  it('a connection error leaves the outcome unknown; an error of our own is a defect', () => {
    const lost = [new CannotConnect(plain('expired', 'CERT_HAS_EXPIRED')), new ConnectionLost(plain('unknown to us'))];
    expect(lost.map(failureOf)).toEqual(lost.map(() => 'lost'));
    const ours = [plain('full', 'ENOSPC'), new TypeError('x'), unavailable('x'), 'x'];
    expect(ours.map(failureOf)).toEqual(ours.map(() => undefined));
  });

  it('an error names its kind but no details of the server', () => {
    expect(logUnavailable(new CannotConnect(plain('getaddrinfo EAI_AGAIN db.internal', 'EAI_AGAIN'))).message).toBe(
      'the log cannot be reached at the moment (EAI_AGAIN), retry',
    );
    expect(logUnavailable(plain('Query read timeout')).message).toBe(
      'the log cannot be reached at the moment (the database does not respond), retry',
    );
  });
});

it('a failing name server or an error of our own ends no working connection', async () => {
  const connections = new Connections(await temporaryPostgres(), 1);
  atEnd(() => connections.close());
  const pidOf = async (client: Client) => (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid as number;
  const pid = await connections.run(pidOf);
  const full = Object.assign(new Error('the copy cannot be written'), { code: 'ENOSPC' });
  await expect(connections.run(() => Promise.reject(full))).rejects.toBe(full);
  expect(await connections.run(pidOf)).toBe(pid);
  const unknown = new Connections('postgres://user@name.invalid/x', 1);
  atEnd(() => unknown.close());
  await expect(unknown.run(pidOf)).rejects.toMatchObject({
    code: 'FORUM_ERR_UNAVAILABLE',
    message: expect.stringMatching(/^the log cannot be reached at the moment \(E[A-Z_]+\), retry$/),
  });
});

// The rights of the database role: an error names each missing right with its GRANT, and a node that has all of them works.
import { describe, expect, it } from 'vitest';
import { findPostgresLog } from '../../../src/log/postgres/existing-log.ts';
import { openPostgresStore } from '../../../src/log/postgres/store.ts';
import { PublishLoop } from '../../../src/publisher/publish-loop.ts';
import { allocationOf, enterPhase, openChamber } from '../../kit/chambers.ts';
import { execute, openStore, ownDatabase, ownRole } from '../../kit/postgres.ts';
import { TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';

/** Returns why a start fails, as doctor also reports it; undefined if the start succeeds. */
async function problem(url: string): Promise<string | undefined> {
  const probed = await findPostgresLog(url).then(
    () => undefined,
    (error: Error) => error.message,
  );
  const started = await openPostgresStore({ url, connectionsMax: 2 }).then(
    (store) => store.close(),
    (error: Error) => error.message,
  );
  expect(probed).toBe(started);
  return probed?.replace(/^cannot open the database postgres:[^ ]+: /, '');
}

describe('a database role', () => {
  it('start and doctor name the GRANT for a role that may not create tables', async () => {
    const { owner, role, url } = await ownRole();
    expect(await problem(url)).toBe(
      `the role ${role} may not create tables in the schema public: GRANT CREATE ON SCHEMA public TO ${role}`,
    );
    await execute(owner, `GRANT CREATE ON SCHEMA public TO ${role}`);
    expect(await problem(url)).toBeUndefined();
  });

  it('an error names the GRANT for a role that may not use the schema', async () => {
    const { owner, role, url } = await ownRole();
    await execute(owner, 'REVOKE USAGE ON SCHEMA public FROM PUBLIC');
    expect(await problem(url)).toBe(
      `no schema of the search_path exists, or the role ${role} may use none: GRANT USAGE, CREATE ON SCHEMA … TO ${role}`,
    );
  });

  it('a role without rights on the tables of a log does not mistake the database for empty', async () => {
    const { owner, role, url } = await ownRole();
    await (await openStore(owner)).close();
    await execute(owner, `GRANT CREATE ON SCHEMA public TO ${role}`);
    expect(await problem(url)).toBe(
      `the role ${role} lacks SELECT on the table meta: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role}`,
    );
  });

  it('a role without rights on the tables of another program gets an error about these tables', async () => {
    const { owner, role, url } = await ownRole();
    await execute(owner, `CREATE TABLE films (id int); GRANT CREATE ON SCHEMA public TO ${role}`);
    expect(await problem(url)).toBe('the database holds tables of another program');
  });

  it('a role needs only the rights that a start asks for, one after the other', { timeout: 60_000 }, async () => {
    const { owner, role, url } = await ownRole();
    await (await openStore(owner)).close();
    let granted = 0;
    for (; ; granted++) {
      const [, privilege, table] = /lacks (\w+) on the table (\w+):/.exec((await problem(url)) ?? '') ?? [];
      if (privilege === undefined) break;
      await execute(owner, `GRANT ${privilege} ON ${table} TO ${role}`);
    }
    expect(granted).toBeGreaterThan(0);
    const service = new TestService({ store: await openStore(url) });
    const members = [await service.agent(), await service.agent()];
    const id = await openChamber(service, members);
    await enterPhase(service, id, 'PROPOSAL');
    const proposal = { name: 'Idea', ticker: 'ONE', description: 'One' };
    const { ideaId } = await service.must('POST', `/chambers/${id}/propose`, {
      by: members[0] as never,
      body: proposal,
    });
    await service.must('POST', `/chambers/${id}/pass`, { by: members[0] as never });
    await enterPhase(service, id, 'ALLOCATE_COMMIT');
    const { commit, reveal } = allocationOf(id, members[0] as never, { [ideaId]: 10_000 });
    await service.must('POST', `/chambers/${id}/allocate/commit`, { by: members[0] as never, body: commit });
    await enterPhase(service, id, 'ALLOCATE_REVEAL');
    await service.must('POST', `/chambers/${id}/allocate/reveal`, { by: members[0] as never, body: reveal });
    await enterPhase(service, id, 'COMMITTED');
    await service.must('PUT', '/personality', { by: members[1] as never, body: { patch: { style: 'calm' } } });
    await service.store.log.dropSnapshot(id);
    await service.forum.persistClock();
    await publishes(service);
    for (const path of ['/chambers', '/ideas', '/events']) {
      expect((await service.app.request(path, {}, {} as never)).status).toBe(200);
    }
  });
});

async function publishes({ composed }: TestService): Promise<void> {
  const { publishing } = composed;
  expect(publishing).toBeInstanceOf(PublishLoop);
  await eventually(async () => {
    await publishing.round();
    expect(publishing.state()).toMatchObject({ ok: true, leads: true });
    expect(publishing.state().size).toBeGreaterThan(0);
  });
  await publishing.stop();
}

it('a database with only a provider’s extensions counts as empty, and a database with a view does not', async () => {
  const url = await ownDatabase();
  await execute(url, 'CREATE EXTENSION pg_stat_statements');
  expect(await problem(url)).toBeUndefined();
  const other = await ownDatabase();
  await execute(other, 'CREATE VIEW films AS SELECT 1 AS id');
  expect(await problem(other)).toBe('the database holds tables of another program');
});

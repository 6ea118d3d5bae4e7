// Whatever the defaults of server, database and role, an append is durable, sees what its competitors have committed, and is
// never cut short.
import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { DamagedStreams } from '../../../src/log/damage.ts';
import { Appender } from '../../../src/log/postgres/append.ts';
import { Connections, runnerOn } from '../../../src/log/postgres/connections.ts';
import { NotificationChannel } from '../../../src/log/postgres/listen-notify.ts';
import { PostgresPublishedTree } from '../../../src/log/postgres/published-tree.ts';
import { createPostgresLog } from '../../../src/log/postgres/whole-log.ts';
import { openChamber } from '../../kit/chambers.ts';
import { connect, execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { atEnd } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';
import { created, entry, NONE } from '../entries.ts';

/** A URL whose sessions begin with these settings, which could also be those of a role or a database. */
function withDefaults(url: string, settings: Readonly<Record<string, string>>): string {
  const changed = new URL(url);
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  changed.searchParams.set('options', [changed.searchParams.get('options'), ...flags].join(' '));
  return changed.href;
}

const POOR_DEFAULTS = {
  synchronous_commit: 'off',
  default_transaction_isolation: 'serializable',
  // The statement that sets the session's timeout must finish within this one, even on a busy machine.
  statement_timeout: '2s',
  lock_timeout: '20ms',
  idle_in_transaction_session_timeout: '50ms',
  extra_float_digits: '-12',
};

async function settingsOf(client: pg.Client): Promise<Readonly<Record<string, string>>> {
  const names = Object.keys(POOR_DEFAULTS);
  const { rows } = await client.query('SELECT name, setting FROM pg_settings WHERE name = ANY ($1)', [names]);
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}

const NEEDED = {
  synchronous_commit: 'on',
  default_transaction_isolation: 'read committed',
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  extra_float_digits: '1',
};

describe('a session', () => {
  it('a session has the settings that the service relies on, and keeps remote_apply', async () => {
    const url = withDefaults(await temporaryPostgres(), POOR_DEFAULTS);
    const connections = new Connections(url, 1);
    atEnd(() => connections.close());
    expect(await connections.run(settingsOf)).toEqual(NEEDED);
    const strict = new Connections(withDefaults(url, { synchronous_commit: 'remote_apply' }), 1);
    atEnd(() => strict.close());
    expect(await strict.run(settingsOf)).toMatchObject({ synchronous_commit: 'remote_apply' });
  });

  it('simultaneous joins at two nodes succeed even if the default isolation is serializable', async () => {
    const url = withDefaults(await temporaryPostgres(), POOR_DEFAULTS);
    const one = new TestService({ store: await openStore(url) });
    const other = new TestService({ store: await openStore(url), clock: one.clock });
    const chambers = [await openChamber(one, []), await openChamber(other, [])];
    const statuses: number[] = [];
    const clients = Array.from({ length: 6 }, async (_, client) => {
      const node = [one, other][client % 2] as TestService;
      for (let round = 0; round < 10; round++) {
        const by = await node.agent();
        const join = await node.request('POST', `/chambers/${chambers[client % 2]}/join`, { by, body: {} });
        statuses.push(join.status);
      }
    });
    await Promise.all(clients);
    expect(statuses).toEqual(Array(60).fill(200));
    expect(await one.store.log.lastPlace()).toBe(124);
  });

  it('a session of a command may be idle in a transaction', async () => {
    const log = await createPostgresLog(withDefaults(await temporaryPostgres(), POOR_DEFAULTS));
    atEnd(log.close);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await log.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

describe('a commit', () => {
  /** Records the durability setting of each transaction that writes to the table. */
  const noteCommits = (table: string) => `
    CREATE TABLE commits (level text);
    CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER note_commit AFTER INSERT ON ${table} DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION note_commit()`;

  /** A connection whose session another program has configured, as behind a pooler. */
  async function shared(url: string): Promise<pg.Client> {
    const client = await connect(url);
    await client.query('SET synchronous_commit = off');
    return client;
  }

  it('the commit of an append waits for the disk even if the session does not', async () => {
    const url = await temporaryPostgres();
    const { log } = await openStore(url);
    await execute(url, noteCommits('events'));
    const client = await shared(url);
    const appender = new Appender({
      logId: log.logId,
      damagedStreams: new DamagedStreams(),
      chamberIdMin: 1,
      clock: { now: Date.now },
    });
    expect(await appender.begin({ entries: [created(1), entry('did:key:zAnn', 1)] })(client, false)).toEqual(NONE);
    expect(await appender.begin({ entries: [entry(1, 2)] })(client, true)).toEqual(NONE);
    expect(await execute(url, 'SELECT level FROM commits')).toEqual(Array(3).fill({ level: 'on' }));
    expect((await client.query('SHOW synchronous_commit')).rows).toEqual([{ synchronous_commit: 'off' }]);
  });

  it('the commit of a checkpoint waits for the disk even if the session does not', async () => {
    const url = await temporaryPostgres();
    const { log, nodes } = await openStore(url);
    const lease = nodes.lease('publisher');
    await eventually(() => expect(lease.token).toBeDefined());
    await execute(url, noteCommits('checkpoints'));
    const client = await shared(url);
    const runner = runnerOn(client);
    const parts = { logId: log.logId, damagedStreams: new DamagedStreams(), sql: runner, commits: runner };
    const publication = { from: 0, checkpoint: { size: 1, note: 'one' }, tiles: [], lease: String(lease.token) };
    expect(await new PostgresPublishedTree(parts).publish(publication)).toBe(true);
    expect(await execute(url, 'SELECT level FROM commits')).toEqual([{ level: 'on' }]);
  });

  it('the commit of a notification leaves the session unchanged', async () => {
    const connections = new Connections(await temporaryPostgres(), 1);
    atEnd(() => connections.close());
    let client: pg.Client | undefined;
    const connectNoted = async () => {
      client = await connections.connect();
      return client;
    };
    const growth = new NotificationChannel({
      connect: connectNoted,
      channel: 'session',
      heads: async () => new Map(),
      onWithheld: () => {},
    });
    atEnd(() => growth.close());
    growth.follow({ followed: () => [], wake: () => {} });
    await eventually(async () => {
      expect(growth.isListening).toBe(true);
      const setting = "SELECT setting FROM pg_settings WHERE name = 'synchronous_commit'";
      expect((await client?.query(setting))?.rows).toEqual([{ setting: 'on' }]);
      const prepared = await client?.query('SELECT statement FROM pg_prepared_statements');
      expect(prepared?.rows).toEqual([{ statement: expect.stringContaining('pg_notify') }]);
    });
  });
});

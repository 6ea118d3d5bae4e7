// PgBouncer between a node and its database: in session mode all holds, in transaction mode nothing starts.
import { describe, expect, it } from 'vitest';
import { fsckPostgres } from '../../../src/log/postgres/maintenance.ts';
import { openPostgresStore, probeDatabase } from '../../../src/log/postgres/store.ts';
import { hasPgBouncer, throughPgBouncer } from '../../kit/pgbouncer.ts';
import { connect, openStore, ownDatabase } from '../../kit/postgres.ts';
import { eventually } from '../../kit/until.ts';
import { entry, NONE } from '../entries.ts';

describe.skipIf(!hasPgBouncer())('behind PgBouncer', () => {
  it.each([1, 4])(
    'in transaction mode, start, doctor and fsck end with one sentence, with %i sessions in the pool',
    async (used) => {
      const database = await ownDatabase();
      await (await openStore(database)).close();
      const url = await throughPgBouncer(database, 'transaction');
      // The pool opens a session for each transaction at the same time.
      const others = await Promise.all(Array.from({ length: used }, () => connect(url)));
      await Promise.all(others.map((client) => client.query('SELECT pg_sleep(0.2)')));
      const programs = [openPostgresStore({ url, connectionsMax: 2 }), probeDatabase(url), fsckPostgres(url, () => {})];
      for (const ended of await Promise.allSettled(programs)) {
        expect(ended).toMatchObject({
          status: 'rejected',
          reason: {
            message: expect.stringMatching(
              /^cannot open the database postgres:\/\/[^ ]+: a pooler shares .* its session mode/,
            ),
          },
        });
      }
      const settings = await Promise.all(others.map((client) => client.query('SHOW jit')));
      expect(settings.map(({ rows }) => rows[0].jit)).toEqual(others.map(() => 'on'));
      const { rows } = await (others[0] as (typeof others)[number]).query('SHOW default_transaction_isolation');
      expect(rows).toEqual([{ default_transaction_isolation: 'read committed' }]);
    },
  );

  it('in session mode nodes append, wake each other, and a node that is alone notifies nobody', async () => {
    const url = await throughPgBouncer(await ownDatabase(), 'session');
    const [writer, reader] = [await openStore(url), await openStore(url)];
    const heard: string[] = [];
    const outsider = await connect(url);
    outsider.on('notification', ({ payload = '' }) => void heard.push(payload));
    await outsider.query(`LISTEN chambers_${writer.log.logId}`);
    writer.nodes.onGrowth({ followed: () => [], wake: () => {} });
    await eventually(() => expect(heard).toEqual(['?']));
    expect(await writer.log.append({ entries: [entry(1, 1)] })).toEqual(NONE);
    // Its own greeting has come back by now, and is not that of another node.
    await outsider.query(`NOTIFY chambers_${writer.log.logId}, 'end'`);
    await eventually(() => expect(heard.at(-1)).toBe('end'));
    expect(heard.slice(0, 2)).toEqual(['?', 'end']);
    const woken: unknown[] = [];
    reader.nodes.onGrowth({ followed: () => [1], wake: (stream) => void woken.push(stream) });
    await eventually(() => expect(woken.length).toBeGreaterThan(0));
    await eventually(() => expect(reader.nodes.state().isListening).toBe(true));
    woken.length = 0;
    await eventually(async () => {
      await writer.log.append({ entries: [entry(1, (await writer.log.lastEventId(1)) + 1)] });
      expect(woken).toContain(1);
    });
  });
});

// PgBouncer in session mode between nodes and their database. The outage suite kills it, and shows that no node starts in
// transaction mode.
import { describe, expect, it } from 'vitest';
import { Connections } from '../../../src/log/postgres/connections.ts';
import { hasPgBouncer, startPgBouncer } from '../../kit/pgbouncer.ts';
import { connect, execute, openStore, ownDatabase } from '../../kit/postgres.ts';
import { atEnd, temporaryFolder } from '../../kit/temporary.ts';
import { eventually } from '../../kit/until.ts';
import { entry, NONE } from '../entries.ts';

describe.skipIf(!hasPgBouncer())('behind PgBouncer', () => {
  it('a node behind PgBouncer does not repeat work that the server is still doing', async () => {
    const database = await ownDatabase();
    const connections = new Connections(await throughPgBouncer(database), 1, { responseTimeoutMillis: 500 });
    atEnd(() => connections.close());
    const sleep = connections.run((client) => client.query('SELECT pg_sleep(4)'));
    await expect(sleep).rejects.toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
    expect(connections.inUse).toBe(1);
    const sleeping = "SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(4)' AND state = 'active'";
    expect(await execute(database, sleeping)).toHaveLength(1);
    await eventually(() => expect(connections.inUse).toBe(0));
    expect(await connections.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('nodes behind PgBouncer append and wake each other, and a single node sends no notifications', async () => {
    const url = await throughPgBouncer(await ownDatabase());
    const [writer, reader] = [await openStore(url), await openStore(url)];
    const heard: string[] = [];
    const outsider = await connect(url);
    outsider.on('notification', ({ payload = '' }) => void heard.push(payload));
    await outsider.query(`LISTEN chambers_${writer.log.logId}`);
    writer.nodes.onGrowth({ followed: () => [], wake: () => {} });
    await eventually(() => expect(heard).toEqual(['?']));
    expect(await writer.log.append({ entries: [entry(1, 1)] })).toEqual(NONE);
    // By now the node has received its own greeting, and must not mistake it for that of another node.
    await outsider.query(`NOTIFY chambers_${writer.log.logId}, 'end'`);
    await eventually(() => expect(heard).toContain('end'));
    // The node greets again at each poll, and reports growth once it knows of others.
    expect(heard.find((payload) => payload !== '?')).toBe('end');
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

/** Returns the URL of the same database through a pooler in session mode. The pooler ends with the test. */
async function throughPgBouncer(databaseUrl: string): Promise<string> {
  const { url, kill } = await startPgBouncer({ databaseUrl, mode: 'session', folder: temporaryFolder() });
  atEnd(kill);
  return url;
}

// A second host in DATABASE_URL that holds a different log.

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openPostgresStore } from '../../../src/log/postgres/store.ts';
import { execute } from '../../kit/postgres.ts';
import { startPostgres } from '../../kit/postgres-server.ts';
import { startProcess } from '../../kit/service-process.ts';
import { Signer } from '../../kit/signer.ts';
import { atEnd, temporaryFolder } from '../../kit/temporary.ts';
import { get, prepare, registrationOf, send } from '../../kit/wire.ts';

async function startServer() {
  const server = await startPostgres();
  atEnd(server.stop);
  return server;
}

it('a second host with a different log gets no line while the first is down, and GET /ready names both logs', {
  timeout: 120_000,
}, async () => {
  const [first, second] = [await startServer(), await startServer()];
  const other = await openPostgresStore({ url: second.url, connectionsMax: 1 });
  await other.close();
  const url = new URL(first.url);
  const database = first.url.replace(url.host, `${url.host},${new URL(second.url).host}`);
  const node = await startProcess('', {
    DATABASE_PATH: '',
    DATABASE_URL: database,
    SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json'),
  });
  let said = '';
  node.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const register = () =>
    send(node.url, prepare('POST', '/register', { body: registrationOf(new Signer()), publicUrl: node.url }));
  const ready = async () => (await get(node.url, '/ready')).status;
  expect((await register()).status).toBe(200);
  const [{ value: logId } = {}] = await execute(first.url, "SELECT value FROM meta WHERE name = 'log_id'");
  await first.kill('SIGINT');
  const ids = `the database holds log ${other.log.logId}, but this service writes log ${logId}`;
  await expect.poll(async () => JSON.stringify((await get(node.url, '/ready')).body)).toMatch(ids);
  expect(await ready()).toBe(503);
  expect((await register()).status).toBe(503);
  expect(await execute(second.url, 'SELECT FROM events')).toEqual([]);
  expect(await execute(second.url, 'SELECT FROM leases')).toEqual([]);
  expect(said).toMatch(`alert raised: ${ids}`);
  await first.restart();
  await expect.poll(ready).toBe(200);
  expect((await register()).status).toBe(200);
});

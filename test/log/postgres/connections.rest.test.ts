import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Client } from 'pg';
import { expect, inject, it } from 'vitest';
import { freePort } from '../../../src/demo/free-port.ts';
import { Connections } from '../../../src/log/postgres/connections.ts';
import { execute } from '../../kit/postgres.ts';
import { atEnd } from '../../kit/temporary.ts';

const pidOf = async (client: Client) => (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid as number;

function connectionsTo(url: string, max: number): Connections {
  const connections = new Connections(url, max);
  atEnd(() => connections.close());
  return connections;
}

it('waiting work gets a released connection if that is sooner than a new one', async () => {
  const silent = new Set<Socket>();
  const url = new URL(inject('postgresUrl'));
  const { hostname, port } = url;
  let isFirst = true;
  const server = createServer((near) => {
    near.on('error', () => {}).on('close', () => silent.delete(near));
    if (isFirst) near.pipe(connect(Number(port), hostname)).pipe(near);
    else silent.add(near);
    isFirst = false;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => void server.close());
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connections = connectionsTo(url.href, 4);
  await connections.run(pidOf);
  const pids = await Promise.all(Array.from({ length: 8 }, () => connections.run(pidOf)));
  expect(new Set(pids).size).toBe(1);
  expect([connections.inUse, connections.awaited]).toEqual([0, 0]);
  // The pool is still opening the other connections.
  expect(silent.size).toBe(3);
});

it('work waits for a silent server once, not once per connection', { timeout: 60_000 }, async () => {
  const url = new URL(inject('postgresUrl'));
  const { hostname, port } = url;
  const passing = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) socket.on('error', () => {}).on('close', () => far.destroy());
    near.pipe(far).pipe(near);
    passing.add(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => void server.close());
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connections = connectionsTo(url.href, 3);
  await Promise.all(Array.from({ length: 3 }, () => connections.run((client) => client.query('SELECT pg_sleep(0.5)'))));
  expect(passing.size).toBe(3);
  for (const near of passing) near.unpipe().pause();
  const pids = [await connections.run(pidOf)];
  const begin = performance.now();
  for (let query = 0; query < 3; query++) pids.push(await connections.run(pidOf));
  expect(performance.now() - begin).toBeLessThan(2_000);
});

it('the pool never exceeds its maximum number of connections', async () => {
  const connections = connectionsTo(inject('postgresUrl'), 2);
  const pids = await Promise.all(Array.from({ length: 8 }, () => connections.run(pidOf)));
  expect(new Set(pids).size).toBeLessThanOrEqual(2);
  const sleeps = Array.from({ length: 8 }, () => connections.run((client) => client.query('SELECT pg_sleep(0.1)')));
  await expect.poll(() => [connections.inUse, connections.awaited]).toEqual([2, 6]);
  await Promise.all(sleeps);
});

it('the pool tries every host for several connections concurrently', async () => {
  const { host, href } = new URL(inject('postgresUrl'));
  const closed = `127.0.0.1:${await freePort()}`;
  const connections = connectionsTo(href.replace(host, `${closed},${host}`), 4);
  const opened = await Promise.allSettled(Array.from({ length: 4 }, () => connections.connect()));
  expect(opened.map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'));
});

it('a closed pool opens no connection for waiting work', async () => {
  const connections = connectionsTo(inject('postgresUrl'), 1);
  const running = connections.run((client) => client.query('SELECT pg_sleep(60)'));
  await expect.poll(() => connections.inUse).toBe(1);
  const outcomes = Promise.allSettled([running, connections.run(pidOf)]);
  await connections.close();
  const unavailable = { status: 'rejected', reason: { code: 'FORUM_ERR_UNAVAILABLE' } };
  expect(await outcomes).toMatchObject([unavailable, unavailable]);
});

it('a lost connection is replaced for waiting work', async () => {
  const connections = connectionsTo(inject('postgresUrl'), 1);
  const pids: number[] = [];
  const lost = connections.run(async (client) => {
    pids.push(await pidOf(client));
    await client.query('SELECT pg_sleep($1)', [pids.length > 1 ? 0 : 60]);
  });
  await expect.poll(() => pids.length).toBe(1);
  const waiting = [connections.run(pidOf), connections.run(pidOf)];
  expect(connections.awaited).toBe(2);
  await execute(inject('postgresUrl'), `SELECT pg_terminate_backend(${pids[0]})`);
  await lost;
  expect(await Promise.all(waiting)).not.toContain(pids[0]);
});

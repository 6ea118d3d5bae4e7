// A node's clock follows the database's and is never ahead of it, whatever happens to the responses.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { PostgresStore } from '../../../src/log/postgres/store.ts';
import { execute, openStore, ownDatabase, temporaryPostgres } from '../../kit/postgres.ts';
import { startPostgres } from '../../kit/postgres-server.ts';
import { signalTree } from '../../kit/process-tree.ts';
import { atEnd } from '../../kit/temporary.ts';
import { eventually } from '../../kit/until.ts';

const FROZEN_MS = 1_000;
/** Longer round trips would not bound the clock tightly enough. */
const ROUND_TRIP_MS_MAX = 250;

/** Reads the node's clock between two readings of the database's. */
async function expectCorrect({ clock }: PostgresStore, url: string): Promise<void> {
  const time = async () => {
    const [row] = await execute(url, 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time');
    return row?.['time'] as number;
  };
  const before = await time();
  const now = clock.now();
  expect(now).toBeLessThanOrEqual(await time());
  expect(now).toBeGreaterThanOrEqual(before - ROUND_TRIP_MS_MAX);
}

it('a node’s clock is right after the database froze during a reading', { timeout: 120_000 }, async () => {
  const server = await startPostgres();
  atEnd(server.stop);
  const url = await temporaryPostgres(server.url);
  const store = await openStore(url);
  await expectCorrect(store, url);
  signalTree(server.pid(), 'SIGSTOP');
  const reading = store.clock.measure();
  await sleep(FROZEN_MS);
  signalTree(server.pid(), 'SIGCONT');
  await reading;
  await expectCorrect(store, url);
});

/** Opens a database whose clock can be set. */
async function openAdjustable() {
  const url = await temporaryPostgres(await ownDatabase());
  const { searchParams } = new URL(url);
  const schema = /search_path=(\w+)/.exec(searchParams.get('options') ?? '')?.[1];
  await (await openStore(url)).close();
  await execute(
    url,
    `CREATE TABLE setting (millis int); INSERT INTO setting VALUES (0);
     CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
       'SELECT pg_catalog.clock_timestamp() + millis * interval ''1 millisecond'' FROM ${schema}.setting'`,
  );
  const adjustable = new URL(url);
  adjustable.searchParams.set('options', `-c search_path=${schema},pg_catalog`);
  const drifts: number[] = [];
  const store = await openStore(adjustable.href, { onDrift: (millis) => void drifts.push(Math.round(millis / 1_000)) });
  const setClock = (millis: number) => execute(url, `UPDATE setting SET millis = ${millis}`);
  return { url: adjustable.href, store, drifts, setClock };
}

it('a node’s clock follows the database’s when that is set, and the node reports it', async () => {
  const { url, store, drifts, setClock } = await openAdjustable();
  for (const millis of [5_000, -3_000]) {
    await setClock(millis);
    await store.clock.measure();
    await expectCorrect(store, url);
  }
  expect(drifts).toEqual([5, -8]);
});

it('the clock is measured soon after a persisted time shows that the database’s clock was set', async () => {
  const { url, store, setClock } = await openAdjustable();
  // A new connection would trigger a measurement.
  await store.meta.persistClock(store.clock.now());
  await setClock(9_000);
  await store.meta.persistClock(store.clock.now());
  await eventually(() => expectCorrect(store, url));
});

it('the clock is measured on a new connection before it is used, as after a failover to a slower clock', async () => {
  const { url, store, setClock } = await openAdjustable();
  await setClock(-10_000);
  const isOurs = "application_name = 'chambers' AND datname = current_database()";
  await execute(url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${isOurs}`);
  await store.log.lastEventId(1);
  await expectCorrect(store, url);
});

// GET /ready follows the state of the server within seconds, even without moves.
import { expect, it } from 'vitest';
import { temporaryPostgres } from '../../kit/postgres.ts';
import { startPostgres } from '../../kit/postgres-server.ts';
import { signalTree } from '../../kit/process-tree.ts';
import { startProcess } from '../../kit/service-process.ts';
import { atEnd } from '../../kit/temporary.ts';
import { get } from '../../kit/wire.ts';

/** The clock is written every second, and a write may take 1.5 s. */
const NOTICED_MS_MAX = 3_000;

async function startService() {
  const server = await startPostgres();
  atEnd(server.stop);
  const { url } = await startProcess('', { DATABASE_PATH: '', DATABASE_URL: await temporaryPostgres(server.url) });
  const becomes = async (status: number) => {
    const begin = performance.now();
    await expect.poll(async () => (await get(url, '/ready')).status, { timeout: 60_000, interval: 100 }).toBe(status);
    return performance.now() - begin;
  };
  expect(await becomes(200)).toBeLessThan(NOTICED_MS_MAX);
  return { server, becomes };
}

it('GET /ready follows a server that goes away and comes back', { timeout: 180_000 }, async () => {
  const { server, becomes } = await startService();
  await server.kill('SIGINT');
  expect(await becomes(503)).toBeLessThan(NOTICED_MS_MAX);
  await server.restart();
  expect(await becomes(200)).toBeLessThan(NOTICED_MS_MAX);
});

it.each([1_000, 12_000])(
  'GET /ready follows a server that stays frozen for another %i ms and continues',
  { timeout: 180_000 },
  async (millis) => {
    const { server, becomes } = await startService();
    signalTree(server.pid(), 'SIGSTOP');
    atEnd(() => signalTree(server.pid(), 'SIGCONT'));
    expect(await becomes(503)).toBeLessThan(NOTICED_MS_MAX);
    await new Promise((resolve) => setTimeout(resolve, millis));
    signalTree(server.pid(), 'SIGCONT');
    expect(await becomes(200)).toBeLessThan(NOTICED_MS_MAX);
  },
);

// How a service ends: a start that fails late leaves no threads behind. A stop waits for requests that are arriving, but not for
// connections that never sent one, which browsers and undici keep in reserve.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { openService } from '../kit/open-service.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { run } from '../kit/service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';

const TASKS = '/proc/self/task';
const STARTS = 4;
const THREADS = 4;

it.skipIf(!existsSync(TASKS))('a start that fails during composition ends its verifier threads', async () => {
  const policy = join(temporaryFolder(), 'policy');
  writeFileSync(policy, 'neither a log nor a witness');
  const before = readdirSync(TASKS).length;
  const settings = { WITNESS_POLICY_FILE: policy, VERIFIER_THREADS: String(THREADS) };
  const clock = { time: Date.now, elapsed: () => performance.now() };
  for (let start = 0; start < STARTS; start++) {
    await expect(openService(settings, { clock })).rejects.toMatchObject({ name: 'ConfigError' });
  }
  await until(() => readdirSync(TASKS).length < before + (STARTS * THREADS) / 2);
});

/** A part of the 5 s that a stop gives requests in progress. */
const STOP_MS_MAX = 1_500;

it('a stop closes connections without a request', async () => {
  const { url, stop } = await run();
  const silent = await RawSocket.open(url);
  const startedAt = performance.now();
  await stop();
  expect(performance.now() - startedAt).toBeLessThan(STOP_MS_MAX);
  await silent.closed;
});

it('a stopping service responds to a request on a connection opened just before the stop', async () => {
  const { url, stop } = await run();
  const socket = await RawSocket.open(url);
  const stopped = stop();
  await setTimeout(100);
  socket.write('GET /health HTTP/1.1\r\n');
  await setTimeout(400);
  socket.write('Host: x\r\n\r\n');
  expect(await socket.receive(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 503 /);
  await stopped;
});

it('a stop waits for a request that was sent while the event loop was busy', async () => {
  const { url, stop } = await run();
  const socket = await RawSocket.open(url);
  await setTimeout(400);
  const stopped = stop();
  socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
  block(200);
  expect(await socket.receive(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 503 /);
  await stopped;
});

function block(millis: number): void {
  const end = performance.now() + millis;
  while (performance.now() < end);
}

// Delayed reads from new connections of an address that is over its budget of main-thread time.
import type { Server } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { toBlockList } from '../../src/connections/client-address.ts';
import { createHttpServer, listen } from '../../src/http/http-server.ts';
import { RequestLimits } from '../../src/http/request-limits.ts';
import { MainThreadMeter } from '../../src/process/main-thread.ts';
import { RawSocket } from '../kit/raw-socket.ts';

/** Milliseconds of main-thread time: the first request exceeds the burst. */
const WORK = { perSecond: 500, burst: 50 };
const AMPLE_WORK = { perSecond: 500, burst: 60_000 };
const BUSY_MS = 150;
const PIPELINED = 64;
const NO_LIMIT = { perSecond: 1_000, burst: 1_000 };

let server: Server | undefined;
afterEach(() => server?.close());

/** Returns how long the second connection should wait, and after what time its first request is handled, in milliseconds. */
async function secondConnection(trustedProxies: readonly string[], workPerAddress = WORK) {
  const waits: number[] = [];
  const control = new RequestLimits({
    meter: new MainThreadMeter(),
    trustedProxies: toBlockList(trustedProxies),
    perAddress: NO_LIMIT,
    workPerAddress,
    registrationsPerAddress: NO_LIMIT,
  });
  const handledAt: number[] = [];
  server = createHttpServer({
    fetch: () => {
      const until = performance.now() + BUSY_MS;
      while (performance.now() < until);
      return new Response('ok');
    },
    requestLimit: (incoming) => {
      handledAt.push(performance.now());
      return control.reject(incoming);
    },
    connectionWait: (socket) => {
      waits.push(control.connectionWait(socket));
      return waits.at(-1) as number;
    },
    limits: readConfig({}),
    now: Date.now,
  });
  const url = await listen(server, { port: 0, host: '127.0.0.1', variables: { port: 'PORT', host: 'HOST' } });
  const first = await RawSocket.open(url);
  first.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await first.receive('200 OK');
  const openedAt = performance.now();
  const second = await RawSocket.open(url);
  second.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(PIPELINED));
  await expect.poll(() => handledAt.length, { timeout: 10_000 }).toBeGreaterThan(1);
  for (const socket of [first, second]) socket.destroy();
  return { wait: waits[1], readAfter: (handledAt[1] as number) - openedAt };
}

it('a new connection is not read before its address is within its budget again', async () => {
  const { wait, readAfter } = await secondConnection([]);
  expect(wait).toBeGreaterThan(0);
  expect(readAfter).toBeGreaterThan(0.9 * (wait as number));
});

it('a new connection is read at once if its address is within its budget, or belongs to a trusted proxy', async () => {
  expect(await secondConnection([], AMPLE_WORK)).toMatchObject({ wait: 0 });
  expect(await secondConnection(['127.0.0.1'])).toMatchObject({ wait: 0 });
});

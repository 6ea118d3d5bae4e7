// New connections of an address over its budget of main-thread time are read later.
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
const BUSY_MS = 150;
const PIPELINED = 64;
const NO_LIMIT = { perSecond: 1_000, burst: 1_000 };

let server: Server | undefined;
afterEach(() => server?.close());

/** How long the second connection should wait, and when its first request is handled, in milliseconds. */
async function secondConnection(trustedProxies: readonly string[], busyMillis: number) {
  const waits: number[] = [];
  const control = new RequestLimits({
    meter: new MainThreadMeter(),
    trustedProxies: toBlockList(trustedProxies),
    perAddress: NO_LIMIT,
    workPerAddress: WORK,
    registrationsPerAddress: NO_LIMIT,
  });
  const handedOver: number[] = [];
  server = createHttpServer({
    fetch: () => {
      const until = performance.now() + busyMillis;
      while (performance.now() < until);
      return new Response('ok');
    },
    requestLimit: (incoming) => {
      handedOver.push(performance.now());
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
  const madeAt = performance.now();
  const second = await RawSocket.open(url);
  second.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(PIPELINED));
  await expect.poll(() => handedOver.length, { timeout: 10_000 }).toBeGreaterThan(1);
  for (const socket of [first, second]) socket.destroy();
  return { wait: waits[1], readAfter: (handedOver[1] as number) - madeAt };
}

it('is not read before the address has paid for what it took', async () => {
  const { wait, readAfter } = await secondConnection([], BUSY_MS);
  expect(wait).toBeGreaterThan(0);
  expect(readAfter).toBeGreaterThan(0.9 * (wait as number));
});

it('is read at once if the address owes nothing, or is that of a proxy, whose requests count against others', async () => {
  expect(await secondConnection([], 0)).toMatchObject({ wait: 0 });
  expect(await secondConnection(['127.0.0.1'], BUSY_MS)).toMatchObject({ wait: 0 });
});

// Thousands of pipelined requests whose responses nobody reads cost no more than one request.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { appendDebates } from '../kit/debates.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { runDebating } from '../kit/service.ts';
import { eventually } from '../kit/until.ts';
import { get } from '../kit/wire.ts';

const CONNECTIONS = 4;
const REQUESTS = 3_000;
/** Events of 60 KB make about 18 MB, far more than the buffers of two sockets. */
const EVENTS = 300;
const QUIET_MS = 500;
/** The buffers of two sockets hold about 10 MB. */
const PAGES_PER_CONNECTION_MAX = 60;

it('a connection executes one request at a time, and reads no page before its response is the next to be sent', async () => {
  const { running, by, id } = await runDebating();
  await appendDebates(running, { did: by.did, chamberId: id, count: EVENTS, bulk: 'x'.repeat(60_000) });
  const reading = vi.spyOn(running.service.forum.store.log, 'readPage');
  const request = `GET /chambers/${id}/events?limit=10000 HTTP/1.1\r\nHost: x\r\n\r\n`;
  for (let connection = 0; connection < CONNECTIONS; connection++) {
    const flooding = await RawSocket.open(running.url);
    flooding.socket.pause();
    flooding.write(request.repeat(REQUESTS));
  }
  await eventually(() => expect(reading).toHaveBeenCalled());
  expect((await get(running.url, '/health')).status).toBe(200);
  await sleep(QUIET_MS);
  expect(reading.mock.calls.length).toBeLessThan(CONNECTIONS * PAGES_PER_CONNECTION_MAX);
});

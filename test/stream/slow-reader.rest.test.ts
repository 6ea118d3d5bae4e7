// Tests that a consumer that pauses loses nothing and does not delay others, and that a closing one causes no more reads.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { consume } from '../kit/consumers.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { call, runDebating } from '../kit/service.ts';
import { eventually } from '../kit/until.ts';

const EVENTS = 200;
/** Lines of about 120 KB: together far more than the buffers of two sockets hold. */
const BULK = { bulk: 'x'.repeat(60_000) };

it('a consumer that paused gets everything once it resumes, and does not delay others', async () => {
  const { running, id, by } = await runDebating();
  const slow = await consume(running, `/chambers/${id}/stream`);
  const quick = await consume(running, `/chambers/${id}/stream`);
  slow.socket.pause();
  for (let at = 0; at < EVENTS; at++) {
    await call(running, by, ['POST', `/chambers/${id}/debate`, { comment: `${at}`, refinement: BULK }]);
  }
  await quick.until(EVENTS);
  expect(slow.lines).toEqual([]);
  slow.socket.resume();
  await slow.until(EVENTS);
  expect(slow.lines).toEqual(quick.lines);
  expect(slow.eventIds).toEqual(Array.from({ length: EVENTS }, (_, at) => at + 3));
});

const CLOSE_FRAME = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]);
const QUIET_MS = 500;

it('a closing consumer causes no more reads, even with a full socket', async () => {
  const { running, id, by } = await runDebating();
  for (let at = 0; at < EVENTS; at++) {
    await call(running, by, ['POST', `/chambers/${id}/debate`, { comment: `${at}`, refinement: BULK }]);
  }
  const reading = vi.spyOn(running.service.forum.store.log, 'readPage');
  const closing = await RawSocket.open(running.url);
  closing.socket.pause();
  const handshake =
    `GET /chambers/${id}/stream?after=0 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`;
  closing.write(Buffer.concat([Buffer.from(handshake), CLOSE_FRAME]));
  await eventually(() => expect(reading).toHaveBeenCalled());
  await sleep(QUIET_MS);
  // There are more than EVENTS / 3 pages in total.
  expect(reading.mock.calls.length).toBeLessThan(EVENTS / 10);
});

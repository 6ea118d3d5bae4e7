// Tests that the service closes connections of peers that are silently gone or read nothing, but not of slow peers.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { consume } from '../kit/consumers.ts';
import { appendDebates } from '../kit/debates.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { type Running, runDebating } from '../kit/service.ts';

const SETTINGS = { STREAM_PING_SECONDS: '1', STREAM_DEAD_SECONDS: '2' };
/** More than twice as long as a peer may be silent. */
const SILENT_MS = 5_000;
const BULK = 'x'.repeat(8_000);

/** Opens a WebSocket peer that answers no ping. */
async function mutePeer({ url }: Running, chamberId: number): Promise<RawSocket> {
  const socket = await RawSocket.open(url);
  socket.write(
    `GET /chambers/${chamberId}/stream?after=0 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
  );
  await socket.receive('"eventId":2');
  return socket;
}

async function openSource({ url }: Running, chamberId: number): Promise<RawSocket> {
  const socket = await RawSocket.open(url);
  socket.write(`GET /chambers/${chamberId}/stream?after=0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
  await socket.receive('id: 2');
  return socket;
}

describe('a peer', { timeout: 180_000 }, () => {
  it('a peer that returns no pong is disconnected, and a peer that does is not', async () => {
    const { running, id, debate } = await runDebating(SETTINGS);
    const alive = await consume(running, `/chambers/${id}/stream?after=0`);
    const mute = await mutePeer(running, id);
    await mute.closed;
    await debate('after the mute peer is gone');
    await alive.until(3);
    expect(alive.closeCode).toBeUndefined();
  });

  it('a peer that stops reading within a backlog is disconnected', async () => {
    const { running, by, id } = await runDebating(SETTINGS);
    const stopped = await mutePeer(running, id);
    stopped.socket.pause();
    await appendDebates(running, { did: by.did, chamberId: id, count: 800, bulk: BULK });
    await sleep(SILENT_MS);
    stopped.socket.resume();
    await stopped.closed;
    expect(stopped.received).not.toContain('"eventId":802,');
  });

  it('a peer that reads a backlog slowly gets everything, however long that takes', async () => {
    const { running, by, id } = await runDebating(SETTINGS);
    await appendDebates(running, { did: by.did, chamberId: id, count: 1_500, bulk: BULK });
    const slow = await consume(running, `/chambers/${id}/stream?after=0`);
    // Takes longer than a peer may be silent, but reads a part in each step.
    for (let step = 0; step < 10; step++) {
      slow.socket.pause();
      await sleep(450);
      slow.socket.resume();
      await sleep(20);
    }
    await slow.until(1_502);
    expect(slow.eventIds).toEqual(Array.from({ length: 1_502 }, (_, index) => index + 1));
  });
});

describe('a reader of server-sent events', { timeout: 180_000 }, () => {
  it('a reader of server-sent events that does not drain its buffer is disconnected, and an idle one gets keep-alives', async () => {
    const { running, by, id, debate } = await runDebating(SETTINGS);
    const [stopped, waiting] = [await openSource(running, id), await openSource(running, id)];
    stopped.socket.pause();
    await appendDebates(running, { did: by.did, chamberId: id, count: 800, bulk: BULK });
    await waiting.receive('id: 802');
    await sleep(SILENT_MS);
    stopped.socket.resume();
    await stopped.closed;
    expect(stopped.received).not.toContain('id: 802');
    await debate('one more');
    await waiting.receive('id: 803');
    expect(waiting.received.match(/: keep-alive/g)?.length).toBeGreaterThan(1);
  });
});

// What readers who do not read cost the service: next to nothing, however much there is for them.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { must, type Player, seatPlayers } from '../durability/players.ts';
import { Consumer } from '../kit/consumers.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { PUBLIC_URL, type ServiceProcess, startProcess } from '../kit/service-process.ts';
import { atEnd } from '../kit/temporary.ts';
import { prepare } from '../kit/wire.ts';

const LOBBY_MS = 1_500;
const MOVES = 300;
/** Some 120 KB a line, 36 MB in all: for all readers together 1.8 GB. */
const BULK = { bulk: 'x'.repeat(60_000) };
const READERS = 50;
/** A fifth of that. 100 to 140 MB were seen on a quiet machine, 201 MB on a busy one; by reckoning the pages held are some 40 MB. */
const GROWTH_BYTES_MAX = 360_000_000;

function residentBytes({ pid }: ServiceProcess): number {
  const [, kibibytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) * 1024;
}

it('a log of megabytes before readers that stand still leaves memory flat, and they get it all', {
  timeout: 90_000,
}, async () => {
  const service = await startProcess(':memory:');
  const { signer, debating } = (await seatPlayers(service.url, 1, Date.now() + LOBBY_MS))[0] as Player;
  await sleep(LOBBY_MS + 100);
  for (let move = 0; move < MOVES; move++) {
    const options = { by: signer, body: { comment: `${move}`, refinement: BULK }, publicUrl: PUBLIC_URL };
    await must(service.url, prepare('POST', `/chambers/${debating}/debate`, options));
  }
  const before = residentBytes(service);
  const path = `/chambers/${debating}/stream?after=0`;
  for (let reader = 0; reader < READERS; reader += 2) {
    const source = await RawSocket.open(service.url);
    source.socket.pause();
    source.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
    await openPaused(service.url.replace('http', 'ws') + path);
  }
  const last = await openPaused(service.url.replace('http', 'ws') + path);
  await sleep(1_000);
  expect(residentBytes(service) - before).toBeLessThan(GROWTH_BYTES_MAX);

  last.socket.resume();
  await last.until(MOVES + 2);
  expect(last.eventIds).toEqual(Array.from({ length: MOVES + 2 }, (_, index) => index + 1));
});

/** A consumer that reads little more than the handshake until it is told to go on. */
async function openPaused(url: string): Promise<Consumer> {
  const socket = new WebSocket(url);
  atEnd(() => socket.terminate());
  const consumer = new Consumer(socket);
  await once(socket, 'open');
  socket.pause();
  return consumer;
}

// Tests that a service that was paused for longer than a peer may be silent keeps its consumers.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { debateOf, must, type Player, seatPlayers } from '../durability/players.ts';
import { consume } from '../kit/consumers.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { startProcess } from '../kit/service-process.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

const SETTINGS = { STREAM_PING_SECONDS: '1', STREAM_DEAD_SECONDS: '2' };
const PAUSE_MS = 4_000;

it('a pause longer than STREAM_DEAD_SECONDS disconnects no live consumer', { timeout: 180_000 }, async () => {
  const database = temporaryDatabase();
  const player = (await seatPlayers(database, 1))[0] as Player;
  const { url, pid } = await startProcess(database, SETTINGS);
  const path = `/chambers/${player.debating}/stream?after=0`;
  const consumer = await consume({ url }, path);
  const source = await RawSocket.open(url);
  source.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
  await Promise.all([consumer.until(2), source.receive('id: 2')]);
  process.kill(pid, 'SIGSTOP');
  await sleep(PAUSE_MS);
  process.kill(pid, 'SIGCONT');
  await sleep(1_000);
  await must(url, debateOf(player, { comment: 'after the pause' }));
  await Promise.all([consumer.until(3), source.receive('id: 3')]);
  expect(consumer.eventIds).toEqual([1, 2, 3]);
});

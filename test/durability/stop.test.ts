// SIGTERM: nothing new is let in, what runs is answered, streams end with 1012, and the process is gone within ten seconds.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { isAlive, processTree } from '../kit/process-tree.ts';
import { ROOT } from '../kit/programs.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { type ServiceProcess, startProcess } from '../kit/service-process.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { registrationOf } from '../kit/wire.ts';
import { eventsBySignature } from './log-book.ts';
import { debateOf, Load, must, type Player, seatPlayers } from './players.ts';
import { seededBy } from './seed.ts';

const STOP_MS_MAX = 10_000;
/** Moves that the service has answered before it is stopped. */
const ANSWERS = 100;
const HEALTH = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n';

async function expectGoodEnd(service: ServiceProcess): Promise<void> {
  const stopped = service.kill('SIGTERM');
  const late = sleep(STOP_MS_MAX, 'it did not end', { ref: false });
  expect(await Promise.race([stopped, late])).toMatchObject({ code: 0, signal: null });
}

/** A service with a chamber in DEBATE. */
async function withChamber() {
  const path = temporaryDatabase();
  const player = (await seatPlayers(path, 1))[0] as Player;
  return { service: await startProcess(path), chamberId: player.debating, player };
}

describe('SIGTERM', { timeout: 180_000 }, () => {
  it('loses no answered move under load, and refuses or answers every other', async () => {
    const random = seededBy('STOP_SEED');
    const path = temporaryDatabase();
    const players = await seatPlayers(path, 8);
    const service = await startProcess(path);
    const load = new Load(service.url, players, random);
    await load.answered(ANSWERS);
    await expectGoodEnd(service);
    for (const played of await Promise.allSettled(load.playing)) {
      // A move after the signal is refused with 503, or with the connection.
      if (played.status === 'rejected') expect(String(played.reason)).toContain('503');
    }
    const logged = eventsBySignature(path);
    for (const { request, answer } of load.attempts) {
      const { signature } = request.headers;
      if (answer !== undefined && signature !== undefined) expect(logged.has(signature)).toBe(true);
    }
  });

  it('answers the request that is under way', async () => {
    const service = await startProcess(':memory:');
    const body = JSON.stringify(registrationOf(new Signer()));
    const head = `POST /register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const socket = await RawSocket.open(service.url);
    socket.write(head + body.slice(0, 10));
    await settled(service.url);
    const ended = expectGoodEnd(service);
    await refused(service.url);
    socket.write(body.slice(10));
    expect(await socket.receive(/agentId/)).toMatch(/^HTTP\/1\.1 200 /);
    await ended;
  });

  it('ends WebSocket streams with 1012', async () => {
    const { service, chamberId } = await withChamber();
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}/chambers/${chamberId}/stream?after=0`);
    await once(socket, 'open');
    const closed = once(socket, 'close');
    await expectGoodEnd(service);
    expect((await closed)[0]).toBe(1012);
  });

  it('ends server-sent events where a line ends', async () => {
    const { service, chamberId } = await withChamber();
    const headers = { accept: 'text/event-stream' };
    const response = await fetch(`${service.url}/chambers/${chamberId}/stream?after=0`, { headers });
    const text = response.text();
    await expectGoodEnd(service);
    expect(await text).toMatch(/\n\n$/);
  });

  it('is not delayed by open connections', async () => {
    const { service, chamberId, player } = await withChamber();
    const refinement = { bulk: 'x'.repeat(60_000) };
    for (let move = 0; move < 60; move++) await must(service.url, debateOf(player, { comment: 'hm', refinement }));
    const hangers = {
      'an idle connection that was kept': HEALTH,
      'a connection that never spoke': '',
      'half a request head': 'GET /health HTTP/1.1\r\nHost:',
      'a body that does not come': 'POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
      'a reader that reads nothing': `GET /chambers/${chamberId}/stream?after=0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`,
    };
    for (const bytes of Object.values(hangers)) {
      const socket = await RawSocket.open(service.url);
      socket.socket.pause();
      socket.write(bytes);
    }
    await settled(service.url);
    await expectGoodEnd(service);
  });

  it('to npm start ends the whole process tree', async () => {
    const env = { ...process.env, PORT: '0', CHAIN: 'none', DATABASE_PATH: ':memory:' };
    const npm = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    try {
      for await (const line of createInterface({ input: npm.stdout })) if (line.startsWith('listening on ')) break;
      npm.stdout.resume();
      const tree = processTree(npm.pid as number).slice(1);
      expect(tree.length).toBeGreaterThan(0);
      npm.kill('SIGTERM');
      await once(npm, 'exit');
      expect(tree.filter(isAlive)).toEqual([]);
    } finally {
      if (npm.exitCode === null && npm.signalCode === null) process.kill(-(npm.pid as number), 'SIGKILL');
    }
  });
});

/** A request sent after others has been answered: so those have been seen. */
async function settled(url: string): Promise<void> {
  await (await fetch(`${url}/health`)).text();
}

/** Until the service accepts no connection. */
async function refused(url: string): Promise<void> {
  const isOpen = () =>
    settled(url)
      .then(() => true)
      .catch(() => false);
  while (await isOpen()) await sleep(10);
}

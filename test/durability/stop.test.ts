// SIGTERM: the service accepts nothing new, completes open requests, ends streams with 1012, and exits within ten seconds.
import { execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { NO_LIMITS } from '../../src/moves/move.ts';
import { findLine } from '../../src/process/child-output.ts';
import { Checker } from '../forum/simulation/checker.ts';
import { isAlive, processTree } from '../kit/process-tree.ts';
import { ROOT } from '../kit/programs.ts';
import { seededBy } from '../kit/random.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { type Exit, type ServiceProcess, startProcess } from '../kit/service-process.ts';
import { Signer } from '../kit/signer.ts';
import { atEnd, temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { registrationOf } from '../kit/wire.ts';
import { readLines } from './log-book.ts';
import { debateOf, historyOf, Load, must, type Player, seatPlayers } from './players.ts';

const STOP_MS_MAX = 10_000;
const CONTRACTS = {
  RELAYER_PRIVATE_KEY: `0x${'11'.repeat(32)}`,
  CHAMBER_REGISTRY_ADDRESS: `0x${'11'.repeat(20)}`,
  IDEA_FACTORY_ADDRESS: `0x${'22'.repeat(20)}`,
};
/** The number of responses to moves before the stop. */
const ANSWERS = 100;
const HANDSHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
const HEALTH = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n';

async function expectGoodEnd(service: ServiceProcess): Promise<void> {
  expect(await inTime(service.kill('SIGTERM'))).toMatchObject({ code: 0, signal: null });
}

async function inTime(stopped: Promise<Exit>): Promise<Exit> {
  const late = sleep(STOP_MS_MAX, undefined, { ref: false }).then(() =>
    Promise.reject(new Error('the service did not exit in time')),
  );
  return Promise.race([stopped, late]);
}

/** A silent name server on port 53, and the command that runs a program with it; undefined if that is not permitted. */
async function silentNameServer(): Promise<readonly string[] | undefined> {
  const address = '127.0.5.3';
  const socket = createSocket('udp4');
  try {
    execFileSync('unshare', ['--mount', 'true'], { stdio: 'ignore' });
    await new Promise<void>((resolve, reject) => socket.once('error', reject).bind(53, address, resolve));
  } catch {
    return undefined;
  }
  atEnd(() => void socket.close());
  const file = join(temporaryFolder(), 'resolv.conf');
  writeFileSync(file, `nameserver ${address}\noptions timeout:30\n`);
  const mounted = `mount --bind ${file} /etc/resolv.conf && exec "$0" "$@"`;
  return ['unshare', '--mount', '/bin/sh', '-c', mounted];
}

/** A service with a chamber in DEBATE. */
async function withChamber() {
  const path = temporaryDatabase();
  const player = (await seatPlayers(path, 1))[0] as Player;
  return { service: await startProcess(path), chamberId: player.debating, player };
}

describe('SIGTERM', { timeout: 180_000 }, () => {
  it('SIGTERM under load loses no accepted move, and every other move gets a response', async () => {
    const random = seededBy('STOP_SEED');
    const path = temporaryDatabase();
    const players = await seatPlayers(path, 8);
    const service = await startProcess(path);
    const load = new Load(service.url, players, random);
    await load.answered(ANSWERS);
    await expectGoodEnd(service);
    for (const played of await Promise.allSettled(load.playing)) {
      // A move after the signal gets 503, or its connection is refused.
      if (played.status === 'rejected') expect(String(played.reason)).toContain('503');
    }
    const history = { requests: historyOf(load.attempts), lines: readLines(path), limits: NO_LIMITS };
    expect(new Checker().check({ ...history, isComplete: false })).toEqual([]);
  });

  it('SIGTERM completes an open request', async () => {
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

  it('SIGTERM ends WebSocket streams with 1012', async () => {
    const { service, chamberId } = await withChamber();
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}/chambers/${chamberId}/stream?after=0`);
    await once(socket, 'open');
    const closed = once(socket, 'close');
    await expectGoodEnd(service);
    expect((await closed)[0]).toBe(1012);
  });

  it('SIGTERM ends server-sent events at the end of a line', async () => {
    const { service, chamberId } = await withChamber();
    const headers = { accept: 'text/event-stream' };
    const response = await fetch(`${service.url}/chambers/${chamberId}/stream?after=0`, { headers });
    const text = response.text();
    await expectGoodEnd(service);
    expect(await text).toMatch(/\n\n$/);
  });

  it('open connections do not delay a stop', async () => {
    const { service, chamberId, player } = await withChamber();
    const refinement = { bulk: 'x'.repeat(60_000) };
    for (let move = 0; move < 60; move++) await must(service.url, debateOf(player, { comment: 'hm', refinement }));
    const stream = `GET /chambers/${chamberId}/stream?after=0 HTTP/1.1\r\nHost: x\r\n`;
    const hangingConnections = {
      'an idle keep-alive connection': HEALTH,
      'a connection without a request': '',
      'half a request head': 'GET /health HTTP/1.1\r\nHost:',
      'a body that does not arrive': 'POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
      'a reader of events that reads nothing': `${stream}Accept: text/event-stream\r\n\r\n`,
      'a WebSocket that reads nothing': `${stream}${HANDSHAKE}\r\n\r\n`,
    };
    for (const bytes of Object.values(hangingConnections)) {
      const socket = await RawSocket.open(service.url);
      socket.socket.pause();
      socket.write(bytes);
    }
    await settled(service.url);
    await expectGoodEnd(service);
  });

  it('a frozen development chain does not delay a stop, and no process is left', async () => {
    const service = await startProcess(temporaryDatabase(), { CHAIN: '' });
    const anvil = processTree(service.pid).find((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'anvil\n') ?? 0;
    process.kill(anvil, 'SIGSTOP');
    await expectGoodEnd(service);
    await expect.poll(() => isAlive(anvil)).toBe(false);
  });

  it('a silent name server does not delay a stop', async ({ skip }) => {
    const resolver = await silentNameServer();
    if (resolver === undefined) console.log('skipped: only root may set a name server');
    if (resolver === undefined) return skip();
    const chain = { CHAIN: '', RPC_URL: 'http://rpc.example.org', ...CONTRACTS };
    const service = await startProcess(temporaryDatabase(), chain, resolver);
    const { code, signal } = await inTime(service.kill('SIGTERM'));
    expect(code ?? signal).toBe('SIGTERM');
  });

  it('SIGTERM to npm start ends the whole process tree', async () => {
    const env = { ...process.env, PORT: '0', CHAIN: 'none', DATABASE_PATH: ':memory:' };
    const npm = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    try {
      await findLine(npm.stdout, /^listening on /);
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

/** Waits for the response to a later request, so that the service has received the earlier ones. */
async function settled(url: string): Promise<void> {
  await (await fetch(`${url}/health`)).text();
}

/** Waits until the service accepts no connections. */
async function refused(url: string): Promise<void> {
  const isOpen = () =>
    settled(url)
      .then(() => true)
      .catch(() => false);
  await until(async () => !(await isOpen()));
}

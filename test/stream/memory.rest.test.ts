// Tests that a stalled reader costs the service one page, however long the log.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { debateOf, must, type Player, seatPlayers } from '../durability/players.ts';
import { type Consumer, consume } from '../kit/consumers.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { type ServiceProcess, startProcess } from '../kit/service-process.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

const QUIET_MS = 500;
const QUIET_TICKS_MAX = 2;
const MOVES = 150;
/** Lines of about 120 KB, 18 MB in total: more than 2.5 GB for all readers together. */
const BULK = { bulk: 'x'.repeat(60_000) };
/** The first readers make the allocator retain about 100 MB of freed memory, which later readers reuse. */
const FIRST_READERS = 50;
const MORE_READERS = 100;
/**
 * One page for each reader, of 262,144 bytes and the rest of its last line, is 40 MB. Without backpressure, the readers would take 1.8 GB.
 */
const GROWTH_BYTES_MAX = 150_000_000;
const COLLECTS_GARBAGE = { NODE_OPTIONS: `--import=${new URL('../kit/collect-garbage.ts', import.meta.url)}` };

function residentBytes({ pid }: ServiceProcess): number {
  const [, kibibytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) * 1024;
}

it.each([
  ['a long log', (chamberId: number) => `/chambers/${chamberId}/stream?after=0`, []],
  // The player has another chamber, of two lines.
  ['all logs', () => '/events?after=0', [1, 2]],
] as const)(
  'memory stays flat while readers of %s stall, and the readers get everything in the end',
  { timeout: 180_000 },
  async (_of, pathOf, others) => {
    const path = temporaryDatabase();
    const player = (await seatPlayers(path, 1))[0] as Player;
    const service = await startProcess(path, COLLECTS_GARBAGE);
    for (let move = 0; move < MOVES; move++) {
      await must(service.url, debateOf(player, { comment: `${move}`, refinement: BULK }));
    }
    const target = pathOf(player.debating);
    await openStalledReaders(service, target, FIRST_READERS);
    const before = residentBytes(service);
    const last = await openStalledReaders(service, target, MORE_READERS);
    expect(residentBytes(service) - before).toBeLessThan(GROWTH_BYTES_MAX);

    last.socket.resume();
    const expected = [...others, ...Array.from({ length: MOVES + 2 }, (_, index) => index + 1)];
    await last.until(expected.length);
    expect(last.eventIds).toEqual(expected);
  },
);

/** Opens stalled readers, half of them by server-sent events; resolves to the last WebSocket once the service is idle and has collected garbage. */
async function openStalledReaders({ url, pid }: ServiceProcess, path: string, readers: number): Promise<Consumer> {
  const consumers: Consumer[] = [];
  for (let reader = 0; reader < readers; reader += 2) {
    const source = await RawSocket.open(url);
    source.socket.pause();
    source.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
    // The consumer reads little more than the handshake until it resumes.
    const consumer = await consume({ url }, path);
    consumer.socket.pause();
    consumers.push(consumer);
  }
  await untilIdle(pid);
  process.kill(pid, 'SIGUSR2');
  await untilIdle(pid);
  return consumers.at(-1) as Consumer;
}

/** Resolves once the process is almost idle. */
async function untilIdle(pid: number): Promise<void> {
  for (let before = Number.NaN, now = cpuTicks(pid); !(now - before <= QUIET_TICKS_MAX); ) {
    await sleep(QUIET_MS);
    [before, now] = [now, cpuTicks(pid)];
  }
}

/** Returns the CPU time that the process has used, in hundredths of a second. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ');
  return Number(fields[13]) + Number(fields[14]);
}

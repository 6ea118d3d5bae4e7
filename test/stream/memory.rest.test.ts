// A reader that stands still costs the service one page, however long the log.
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
const MOVES = 300;
/** Some 120 KB a line, 36 MB in all: for all readers together more than 5 GB. */
const BULK = { bulk: 'x'.repeat(60_000) };
/** They make the allocator keep some 100 MB of freed memory, which later ones use. */
const FIRST_READERS = 50;
const MORE_READERS = 100;
/**
 * A page each, of 262,144 bytes and the rest of the line that fills it, is 40 MB. Readers that were not held back would take
 * 3.6 GB.
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
  'memory stays flat while readers of %s stand still, and they get everything',
  { timeout: 180_000 },
  async (_of, pathOf, others) => {
    const path = temporaryDatabase();
    const player = (await seatPlayers(path, 1))[0] as Player;
    const service = await startProcess(path, COLLECTS_GARBAGE);
    for (let move = 0; move < MOVES; move++) {
      await must(service.url, debateOf(player, { comment: `${move}`, refinement: BULK }));
    }
    const target = pathOf(player.debating);
    await openStandingStill(service, target, FIRST_READERS);
    const before = residentBytes(service);
    const last = await openStandingStill(service, target, MORE_READERS);
    expect(residentBytes(service) - before).toBeLessThan(GROWTH_BYTES_MAX);

    last.socket.resume();
    const expected = [...others, ...Array.from({ length: MOVES + 2 }, (_, index) => index + 1)];
    await last.until(expected.length);
    expect(last.eventIds).toEqual(expected);
  },
);

/** Half of them by server-sent events; returns the last of the others once the service is idle and has collected its garbage. */
async function openStandingStill({ url, pid }: ServiceProcess, path: string, readers: number): Promise<Consumer> {
  const consumers: Consumer[] = [];
  for (let reader = 0; reader < readers; reader += 2) {
    const source = await RawSocket.open(url);
    source.socket.pause();
    source.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
    // It reads little more than the handshake until it is resumed.
    const consumer = await consume({ url }, path);
    consumer.socket.pause();
    consumers.push(consumer);
  }
  await settled(pid);
  process.kill(pid, 'SIGUSR2');
  await settled(pid);
  return consumers.at(-1) as Consumer;
}

/** Once the process has next to nothing to do. */
async function settled(pid: number): Promise<void> {
  for (let before = Number.NaN, now = processorTicks(pid); !(now - before <= QUIET_TICKS_MAX); ) {
    await sleep(QUIET_MS);
    [before, now] = [now, processorTicks(pid)];
  }
}

/** Hundredths of a second of processor time that the process has used. */
function processorTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ');
  return Number(fields[13]) + Number(fields[14]);
}

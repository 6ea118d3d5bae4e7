// Destinations that cannot be written: how often the writer retries, and which lines count as lost.
import { execFileSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LogDestination } from '../../src/diagnostics/log-destination.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const MINUTE_MS = 60_000;
const OPTIONS = { bufferBytesMax: 1_000, onLost: () => {} };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Returns both ends of a pipe. */
function openPipe() {
  const path = join(temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { reader, writer: openSync(path, constants.O_WRONLY | constants.O_NONBLOCK) };
}

it.runIf(existsSync('/dev/full'))(
  'a full destination is retried at growing intervals, and lines are buffered up to the limit',
  () => {
    const fd = openSync('/dev/full', 'w');
    const destination = new LogDestination({ fd }, OPTIONS);
    destination.write('first\n');
    let tries = 0;
    for (const end = Date.now() + MINUTE_MS; vi.getTimerCount() > 0 && Date.now() < end; tries++) {
      vi.advanceTimersToNextTimer();
    }
    expect(tries).toBeGreaterThan(50);
    expect(tries).toBeLessThan(150);
    expect(destination.lostLines).toBe(0);
    closeSync(fd);
  },
);

it('a destination without a reader is tried once, and its lines count as lost', () => {
  const { reader, writer } = openPipe();
  const destination = new LogDestination({ fd: writer }, OPTIONS);
  destination.write('read\n');
  expect(readSync(reader, Buffer.alloc(100))).toBe(5);
  closeSync(reader);
  destination.write('lost\n');
  destination.write('lost too\n');
  expect(destination.lostLines).toBe(2);
  expect(vi.getTimerCount()).toBe(0);
  closeSync(writer);
});

it('a closed destination is tried once', () => {
  const fd = openSync(join(temporaryFolder(), 'log'), 'w');
  closeSync(fd);
  const destination = new LogDestination({ fd }, OPTIONS);
  destination.write('lost\n');
  expect([destination.lostLines, vi.getTimerCount()]).toEqual([1, 0]);
});

it('a reader that resumes gets all buffered lines at the next retry', () => {
  const { reader, writer } = openPipe();
  const destination = new LogDestination({ fd: writer }, { ...OPTIONS, bufferBytesMax: 1_000_000 });
  const line = `${'x'.repeat(999)}\n`;
  for (let count = 0; count < 100; count++) destination.write(line);
  expect(vi.getTimerCount()).toBe(1);
  let read = readSync(reader, Buffer.alloc(200_000));
  vi.advanceTimersByTime(500);
  read += readSync(reader, Buffer.alloc(200_000));
  expect(read).toBe(100_000);
  expect(vi.getTimerCount()).toBe(0);
  closeSync(reader);
  closeSync(writer);
});

it('a file gets each line at once', () => {
  const path = join(temporaryFolder(), 'log');
  const fd = openSync(path, 'w');
  new LogDestination({ fd }, OPTIONS).write('line\n');
  expect(readFileSync(path, 'utf8')).toBe('line\n');
  closeSync(fd);
});

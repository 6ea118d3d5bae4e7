// The service's own log while it cannot be written: lines are lost and counted, and nothing else is affected.

import { execFileSync } from 'node:child_process';
import { closeSync, constants, copyFileSync, openSync, readFileSync, readSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../src/demo/free-port.ts';
import { isAlive } from '../kit/process-tree.ts';
import { type ServiceProcess, startProcess } from '../kit/service-process.ts';
import { fill } from '../kit/small-file-system.ts';
import { atEnd, smallDisk, temporaryFolder } from '../kit/temporary.ts';

/** The size of a buffer that a few requests fill. */
const BUFFER_BYTES = 16_384;
const MORE_THAN_SOCKETS_HOLD = 4_000;
const LOST = /log lines were lost/;

interface Logging {
  readonly service: ServiceProcess;
  /** Sends requests, each of which is logged with a line, and returns their number. */
  readonly request: (count: number) => Promise<number>;
  readonly lostLines: () => Promise<number>;
}

/** Starts a service that logs every request to the path. */
async function logging(path: string, settings: Readonly<Record<string, string>> = {}): Promise<Logging> {
  const port = await freePort();
  const own = { LOG_LEVEL: 'debug', LOG_BUFFER_BYTES_MAX: String(BUFFER_BYTES), METRICS_PORT: String(port) };
  const service = await startProcess(':memory:', { ...own, ...settings }, [
    '/bin/sh',
    '-c',
    `exec "$0" "$@" 2>>${path}`,
  ]);
  const request = async (count: number) => {
    for (let sent = 0; sent < count; sent++) expect((await fetch(`${service.url}/health`)).status).toBe(200);
    return count;
  };
  const lostLines = async () => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return Number(/^chambers_diagnostic_lines_lost_total (\d+)$/m.exec(text)?.[1]);
  };
  return { service, request, lostLines };
}

/** Sends requests until lines are lost, and returns their number. */
async function untilLost({ request, lostLines }: Logging): Promise<number> {
  let sent = 0;
  while ((await lostLines()) === 0) sent += await request(100);
  return sent;
}

interface LogLine {
  readonly msg: string;
  readonly lines?: number;
}

/** Parses lines; throws if one is not JSON. */
function parsed(text: string): readonly LogLine[] {
  expect(text.endsWith('\n')).toBe(true);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Expects a line for every request, or a line with the number of lost lines. */
function expectAccounted(lines: readonly LogLine[], sent: number): void {
  const written = lines.filter(({ msg }) => msg === 'request').length;
  const lost = lines.filter(({ msg }) => LOST.test(msg)).map((line) => line.lines ?? 0);
  expect(lost).toHaveLength(1);
  expect(written + (lost[0] ?? 0)).toBe(sent);
}

describe('a log on a full disk', () => {
  it('a log on a full disk loses and counts lines, and reports their number once there is space', async ({ skip }) => {
    const folder = smallDisk('128k');
    if (folder === undefined) return skip();
    const [path, ballast] = [join(folder, 'log'), join(folder, 'ballast')];
    const { service, ...rest } = await logging(path);
    fill(ballast);
    const sent = await untilLost({ service, ...rest });
    rmSync(ballast);
    await expect.poll(() => readFileSync(path, 'utf8')).toMatch(LOST);
    expectAccounted(parsed(readFileSync(path, 'utf8')), sent);
    fill(ballast);
    expect(await service.kill('SIGTERM')).toMatchObject({ code: 0, signal: null });
  });

  it('a log on a full disk also loses lines of the human-readable format', async ({ skip }) => {
    const folder = smallDisk('128k');
    if (folder === undefined) return skip();
    const [path, ballast] = [join(folder, 'log'), join(folder, 'ballast')];
    fill(ballast);
    const running = await logging(path, { LOG_FORMAT: 'pretty' });
    await untilLost(running);
    rmSync(ballast);
    await expect.poll(() => readFileSync(path, 'utf8')).toMatch(LOST);
    expect(await running.service.kill('SIGTERM')).toMatchObject({ code: 0, signal: null });
  });
});

describe('a log whose reader hangs', () => {
  it('a log whose reader hangs loses lines beyond its buffer, and delays neither the service nor its stop', async () => {
    const { path } = standstill();
    const running = await logging(path);
    await untilLost(running);
    expect(await running.service.kill('SIGTERM')).toMatchObject({ code: 0, signal: null });
  });

  it('a log whose reader resumes is complete except for the counted lines', async () => {
    const { path, read } = standstill();
    const running = await logging(path);
    const sent = await untilLost(running);
    let text = '';
    const readOn = () => {
      text += read();
      return text;
    };
    await expect.poll(readOn).toMatch(LOST);
    expectAccounted(parsed(text), sent);
  });

  it('a log may be written to a socket', async () => {
    const service = await startProcess(':memory:', { LOG_LEVEL: 'debug', LOG_BUFFER_BYTES_MAX: String(BUFFER_BYTES) });
    service.stderr.pause();
    for (let sent = 0; sent < MORE_THAN_SOCKETS_HOLD; sent++) await (await fetch(`${service.url}/health`)).text();
    const exited = service.kill('SIGTERM');
    await expect.poll(() => isAlive(service.pid), { timeout: 10_000 }).toBe(false);
    service.stderr.resume();
    const { code, stderr } = await exited;
    expect(code).toBe(0);
    expect(stderr.split('\n').length).toBeLessThan(MORE_THAN_SOCKETS_HOLD);
  });
});

/** A pipe from which only `read` reads. */
function standstill() {
  const path = join(temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  atEnd(() => closeSync(fd));
  const buffer = Buffer.alloc(65_536);
  const read = () => {
    try {
      return buffer.toString('latin1', 0, readSync(fd, buffer));
    } catch {
      // The pipe is empty now.
      return '';
    }
  };
  return { path, read };
}

it('a log that was copied and truncated continues at the beginning of its file', async () => {
  const path = join(temporaryFolder(), 'log');
  const { request } = await logging(path);
  await request(10);
  copyFileSync(path, `${path}.1`);
  truncateSync(path);
  await request(10);
  const lines = [...parsed(readFileSync(`${path}.1`, 'utf8')), ...parsed(readFileSync(path, 'utf8'))];
  expect(lines.filter(({ msg }) => msg === 'request')).toHaveLength(20);
});

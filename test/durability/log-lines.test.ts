// Everything on standard error is a line of the service's log, including output of Node and libraries.
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { runService, startProcess } from '../kit/service-process.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { flipBit } from '../log/entries.ts';
import { seatPlayers } from './players.ts';

/** Code that runs in the service before its start. */
function preload(code: string): Readonly<Record<string, string>> {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
}

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly err?: { readonly type: string; readonly message: string; readonly stack: string };
}

/** Parses lines; throws if one is not JSON. */
function parsed(stderr: string): readonly LogLine[] {
  const lines = stderr.split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => JSON.parse(line));
}

it('a warning is logged without its objects', async () => {
  const code = `process.once("SIGUSR2", () => process.emitWarning(Object.assign(new Error("leak"), { emitter: { headers: ["sec" + "ret"] } })))`;
  const service = await startProcess(':memory:', preload(code));
  process.kill(service.pid, 'SIGUSR2');
  await once(service.stderr, 'data');
  const { stderr } = await service.kill('SIGTERM');
  expect(parsed(stderr)).toMatchObject([{ level: 40, err: { message: 'leak' } }]);
  expect(stderr).not.toContain('secret');
});

it('a warning from Node is logged as one line', async () => {
  const service = await startProcess(':memory:', preload('process.once("SIGUSR2", () => setTimeout(() => {}, -1))'));
  process.kill(service.pid, 'SIGUSR2');
  expect((await fetch(`${service.url}/health`)).status).toBe(200);
  const { code, stderr } = await service.kill('SIGTERM');
  expect(code).toBe(0);
  expect(parsed(stderr)).toEqual([
    expect.objectContaining({ level: 40, err: expect.objectContaining({ name: 'TimeoutNegativeWarning' }) }),
  ]);
});

it.each([
  ['an unhandled rejection', 'Promise.reject(new TypeError("one"))'],
  ['a failure of background work', 'import("DETACH").then(({ detach }) => detach(Promise.reject(new Error("one"))))'],
])('%s is logged as one line, and the process continues', async (_title, statement) => {
  const code = statement.replace('DETACH', new URL('../../dist/src/process/detach.js', import.meta.url).href);
  const service = await startProcess(':memory:', preload(`process.once("SIGUSR2", () => void ${code})`));
  process.kill(service.pid, 'SIGUSR2');
  await once(service.stderr, 'data');
  expect((await fetch(`${service.url}/health`)).status).toBe(200);
  const { code: exitCode, stderr } = await service.kill('SIGTERM');
  expect(exitCode).toBe(0);
  const lines = parsed(stderr).filter(({ err }) => err !== undefined);
  expect(lines).toMatchObject([{ err: { message: expect.stringContaining('one') } }]);
});

it('an uncaught exception is the last line at any log level, and the exit code is 1', async () => {
  const code = 'process.once("SIGUSR2", () => { throw new TypeError("one\\ntwo"); })';
  const service = await startProcess(':memory:', { ...preload(code), LOG_LEVEL: 'silent' });
  const { code: exitCode, stderr } = await service.kill('SIGUSR2');
  expect(exitCode).toBe(1);
  const err = expect.objectContaining({
    type: 'TypeError',
    message: 'one\ntwo',
    stack: expect.stringContaining(' at '),
  });
  expect(parsed(stderr)).toEqual([expect.objectContaining({ level: 60, err })]);
});

it('a failed stream of server-sent events is logged as one line', async () => {
  const path = temporaryDatabase();
  await seatPlayers(path, 1);
  flipBit(path, { column: 'line', position: 2, bit: 100 });
  const service = await startProcess(path, { LOG_LEVEL: 'error' });
  const headers = { accept: 'text/event-stream' };
  const response = await fetch(`${service.url}/events?after=0`, { headers });
  await response.text().catch(() => {});
  expect(parsed((await service.kill('SIGTERM')).stderr)).toMatchObject([
    { msg: expect.stringMatching(/^alert raised: chamber 1 is damaged/) },
    { level: 50, source: 'console', msg: expect.stringMatching(/^StreamDamaged: .*\n +at /) },
  ]);
});

it('a failed start reports all invalid variables on one line', async () => {
  const { exited } = await runService({ PORT: 'x', HEADER_BYTES_MAX: '1', LOG_LEVEL: 'silent' });
  const { stderr } = await exited;
  const [line, ...others] = parsed(stderr);
  expect(others).toEqual([]);
  expect(line).toMatchObject({
    level: 60,
    msg: expect.stringMatching(/^the configuration is wrong:\n {2}PORT: .*\n {2}HEADER_BYTES_MAX: /),
  });
});

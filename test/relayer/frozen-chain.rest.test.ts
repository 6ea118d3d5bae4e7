// Tests a service whose development chain is frozen: its log, its /health and metrics, and its chambers.
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { HOUR, TestClock } from '../kit/clock.ts';
import { processTree } from '../kit/process-tree.ts';
import { debating, run } from '../kit/service.ts';
import { until } from '../kit/until.ts';
import { get } from '../kit/wire.ts';

it('the service reports a frozen chain in /health, metrics and pages until the chain is restarted, and then commits chambers', async () => {
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line) => void lines.push(line) });
  const running = await run({ CHAIN: '', METRICS_PORT: '0' }, new TestClock(), logger);
  const { id } = await debating(running);
  const read = async (path: string) => (await get(running.url, path)).body;
  const page = async () => (await fetch(`${running.url}/chambers/${id}`, { headers: { accept: 'text/html' } })).text();
  const metrics = async () => (await fetch(lineOf(lines, 'metrics').url)).text();

  process.kill(anvilPid(), 'SIGSTOP');
  running.clock.advance(10 * HOUR);
  await until(async () => !(await read('/health')).ok);
  const reason = 'the development chain does not respond';
  expect(await read('/health')).toMatchObject({ ok: false, chain: { relayer: { reason } } });
  expect(await metrics()).toContain('\nchambers_healthy 0\n');
  expect(await page()).toContain(`The root of the log waits for the chain: <bdi>${reason}</bdi>.`);
  expect((await get(running.url, '/ready')).status).toBe(200);

  await until(async () => (await read(`/chambers/${id}`)).phase === 'COMMITTED');
  await until(async () => (await read('/health')).ok);
  expect((await read('/health')).chain.relayer).toEqual({ pending: 0, failed: 0, leads: true });
  expect(await metrics()).toContain('\nchambers_healthy 1\n');
});

function lineOf(lines: readonly string[], message: string) {
  return lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === message);
}

function anvilPid(): number {
  const pid = processTree(process.pid).find((each) => readFileSync(`/proc/${each}/comm`, 'utf8').trim() === 'anvil');
  if (pid === undefined) throw new Error('Anvil is not running');
  return pid;
}

// A machine that sleeps: an MCP server and a `tail` are suspended, and their connections are lost when they wake up. Both resume without
// help. ASLEEP_SECONDS=300 makes them sleep longer.
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Agent } from '../../src/client/index.ts';
import { pause } from '../../src/reading/waiting.ts';
import { CLI } from '../kit/programs.ts';
import { atEnd } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { startSeat } from '../mcp/seat-process.ts';
import { openProxy } from './cuttable-proxy.ts';
import { newAgent, newChamber, REGISTRATION, runLiveService } from './live-service.ts';

const ASLEEP_SECONDS = Number(process.env['ASLEEP_SECONDS'] ?? 5);
const HOUR_MILLIS = 3_600_000;
/** The client drops a silent connection after a minute. */
const AWAKE_MILLIS_MAX = 100_000;
const FRESH_SECONDS = 30;

interface Sleep {
  /** How far the clocks advance during the sleep. */
  readonly wallHours: number;
  readonly steadyHours: number;
  /** Whether the connections are closed, or stay open but pass no bytes. */
  readonly lose: 'cut' | 'forget';
}

/** Each kind of sleep has its own test file: the tests wait for minutes, so they run in parallel. */
export function itResumesAfter(name: string, { wallHours, steadyHours, lose }: Sleep): void {
  const timeout = 2 * AWAKE_MILLIS_MAX + (ASLEEP_SECONDS + 60) * 1_000;
  it(`an MCP server and a tail that wake up to ${name} resume without help`, { timeout }, async () => {
    const live = await runLiveService();
    const proxy = await openProxy(live.baseUrl);
    const steadyFile = join(live.folder, 'steady');
    writeFileSync(steadyFile, '0');
    const env = { ...live.sharedTimeEnv, TEST_STEADY_FILE: steadyFile };
    const keyFile = join(live.folder, 'agent.json');
    await (await Agent.fromKeyFile(live.baseUrl, keyFile)).register(REGISTRATION);
    const seat = await startSeat('modern', { url: proxy.baseUrl, keyFile, env });
    const other = await newAgent(live);
    const { chamberId } = await other.createChamber(
      newChamber(
        live.now(),
        [1, 1, 1, 4, 9].map((n) => n * HOUR_MILLIS),
      ),
    );
    await other.joinChamber(chamberId);
    await seat.call('join', { chamberId });
    live.advance(HOUR_MILLIS);
    await other.propose(chamberId, { name: 'Rain', ticker: 'RAIN' });
    live.advance(2 * HOUR_MILLIS);
    await seat.call('allocate', { chamberId, allocations: [{ ideaId: 'RAIN', bps: 6_000 }] });
    const tail = startTail(chamberId, proxy.baseUrl, env);
    const linesOf = async () => await (await fetch(`${live.baseUrl}/chambers/${chamberId}/events`)).text();
    await eventually(async () => expect(tail.printed()).toBe(await linesOf()), AWAKE_MILLIS_MAX);
    const seconds = lose === 'cut' ? 10 : 50;
    const waiting = seat.client.callTool({ name: 'wait', arguments: { seconds } }, { timeout: 2 * AWAKE_MILLIS_MAX });

    for (const pid of [seat.pid, tail.pid]) process.kill(pid, 'SIGSTOP');
    proxy[lose]();
    await other.commit(chamberId, [{ ideaId: 'RAIN', bps: 1_000 }]);
    writeFileSync(steadyFile, `${steadyHours * HOUR_MILLIS}`);
    live.advance(wallHours * HOUR_MILLIS);
    await pause(ASLEEP_SECONDS * 1_000);
    for (const pid of [seat.pid, tail.pid]) process.kill(pid, 'SIGCONT');

    await eventually(async () => expect(tail.printed()).toBe(await linesOf()), AWAKE_MILLIS_MAX);
    expect((await waiting).isError).toBeFalsy();
    live.advance((4 - wallHours) * HOUR_MILLIS);
    const revealed = async () => {
      for await (const { event } of live.forum.history(chamberId))
        if (event.type === 'allocation.revealed') return event;
      return undefined;
    };
    await eventually(async () => expect(await revealed()).toBeDefined(), AWAKE_MILLIS_MAX);
    const { ts = '', request } = (await revealed()) ?? {};
    const [, created] = /;created=(\d+)/.exec(JSON.stringify(request)) ?? [];
    expect(Math.abs(Date.parse(ts) / 1_000 - Number(created))).toBeLessThan(FRESH_SECONDS);
    await eventually(async () => expect(tail.printed()).toBe(await linesOf()), AWAKE_MILLIS_MAX);
    expect(await seat.call('todo')).toMatchObject({ todo: [{ chamberId, must: 'wait' }] });
    await eventually(() => expect(seat.errors()).toBe(`revealed in chamber ${chamberId}\n`));
    expect([tail.exitCode(), tail.errors()]).toEqual([null, '']);
  });
}

function startTail(chamberId: number, url: string, env: Readonly<Record<string, string>>) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child: ChildProcess = spawn(
    process.execPath,
    [CLI, 'chamber', 'tail', `${chamberId}`, '--json', `--url=${url}`],
    {
      env: { PATH, NODE_COMPILE_CACHE, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  atEnd(() => void child.kill('SIGKILL'));
  const texts = { printed: '', errors: '' };
  child.stdout?.on('data', (chunk) => {
    texts.printed += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    texts.errors += chunk;
  });
  return {
    pid: child.pid as number,
    printed: () => texts.printed,
    errors: () => texts.errors,
    exitCode: () => child.exitCode,
  };
}

// Checks system calls: the response to a move is sent after its line has reached the disk.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { requireInstalled } from '../kit/programs.ts';
import { startProcess } from '../kit/service-process.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { debateOf, must, type Player, seatPlayers } from './players.ts';

const MOVES = 50;

it('a response follows the fsync of its move', { timeout: 180_000 }, async ({ skip }) => {
  requireInstalled(skip, 'strace');
  const folder = temporaryFolder();
  const trace = join(folder, 'trace');
  const wrapper = [
    'strace',
    '-D',
    '-f',
    '-s',
    '40',
    '-e',
    'trace=fsync,fdatasync,write,writev,sendto,sendmsg',
    '-o',
    trace,
  ];
  const path = join(folder, 'chambers.db');
  const player = (await seatPlayers(path, 1))[0] as Player;
  const service = await startProcess(path, {}, wrapper);
  for (let move = 0; move < MOVES; move++) await must(service.url, debateOf(player, { comment: `move ${move}` }));
  await service.kill('SIGTERM');

  const steps = stepsOf(await traced(trace, service.pid));
  expect(steps.match(/A/g)?.length).toBeGreaterThanOrEqual(MOVES);
  // Requests are sent one at a time, so between two responses there must be the fsync of the second move.
  expect(steps).not.toMatch(/AA/);
  expect(steps).toMatch(/^S/);
});

/** Resolves to the trace once strace has recorded the exit of the process. */
async function traced(path: string, pid: number): Promise<string> {
  const end = new RegExp(`^${pid} +\\+\\+\\+ exited`, 'm');
  let text = '';
  await until(() => {
    text = readFileSync(path, 'utf8');
    return end.test(text);
  });
  return text;
}

/** Returns S for each completed sync and A for each 200 sent, in order. */
function stepsOf(trace: string): string {
  const sync = /(?:fsync|fdatasync)(?:\(\d+\)| resumed>\)) += 0$/;
  const answer = /(?:write|writev|sendto|sendmsg)\(.*HTTP\/1\.1 200 /;
  const steps = trace.split('\n').map((line) => (sync.test(line) ? 'S' : answer.test(line) ? 'A' : ''));
  return steps.join('');
}

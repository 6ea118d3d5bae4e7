// A user's quota, which SQLite reports as an I/O error, like a failing disk. The file size limit, which any user may lower, is reported in
// the same way.
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { startProcess } from '../kit/service-process.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { get, send } from '../kit/wire.ts';
import { eventsBySignature, faultsOf } from './log-book.ts';
import { debateOf, must, type Player, seatPlayers } from './players.ts';

const hasPrlimit = spawnSync('prlimit', ['--version']).error === undefined;
/** Handles the signal that would otherwise end the process before the write fails. */
const IGNORES_SIGNAL = '--import data:text/javascript,process.on(`SIGXFSZ`,()=>{})';

function limitFiles(pid: number, bytes: number | 'unlimited'): void {
  const { status, stderr } = spawnSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:unlimited`]);
  expect([status, String(stderr)]).toEqual([0, '']);
}

it.skipIf(!hasPrlimit)('beyond a quota, moves get 503 and reads continue, until there is space', async () => {
  const path = temporaryDatabase();
  const player = (await seatPlayers(path, 1))[0] as Player;
  const { url, pid, kill } = await startProcess(path, { NODE_OPTIONS: IGNORES_SIGNAL });
  const comment = 'x'.repeat(8_000);
  await must(url, debateOf(player, { comment }));
  limitFiles(pid, 4_096);
  const refused = debateOf(player, { comment });
  for (let attempt = 0; attempt < 3; attempt++) {
    expect(await send(url, refused)).toMatchObject({ status: 503, body: { error: 'FORUM_ERR_UNAVAILABLE' } });
  }
  const ready = async () => (await get(url, '/ready')).status;
  await expect.poll(ready).toBe(503);
  expect(await get(url, `/chambers/${player.debating}`)).toMatchObject({ status: 200 });
  limitFiles(pid, 'unlimited');
  await must(url, refused);
  await expect.poll(ready).toBe(200);
  await must(url, debateOf(player, { comment }));
  expect(await kill('SIGTERM')).toMatchObject({ code: 0 });
  expect(eventsBySignature(path).has(refused.headers['signature'] ?? '')).toBe(true);
  expect(await faultsOf(path)).toEqual([]);
});

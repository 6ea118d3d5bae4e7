// `chambers watch` with commands that fail, hang, flood its output or are killed.
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PHASE_MILLIS, sharedLiveService } from '../client/live-service.ts';
import { isAlive, processTree } from '../kit/process-tree.ts';
import { CLI } from '../kit/programs.ts';
import { eventually, until } from '../kit/until.ts';
import { agentInTurn, startWatch } from './watching.ts';

const live = sharedLiveService();

/** The pids that a command of the test has written. */
const pidsIn = (path: string) => readFileSync(path, 'utf8').trim().split('\n').map(Number);

it('watch takes part in a chamber by running commands, and reveals automatically', async () => {
  const { agent, chamberId, key } = await agentInTurn(live);
  const cli = `${process.execPath} ${CLI} move`;
  const act = `case $CHAMBERS_MUST in
    pass) ${cli} propose $CHAMBERS_CHAMBER --name=Tea --ticker=TEA; ${cli} pass $CHAMBERS_CHAMBER; touch ${key}.passed; sleep 600;;
    commit) ${cli} commit $CHAMBERS_CHAMBER TEA=10000;;
  esac`;
  const first = startWatch(live, key, `--exec=${act}`, '--json');
  await until(() => existsSync(`${key}.passed`));
  first.child.kill('SIGKILL');
  live.advance(2 * PHASE_MILLIS);
  const second = startWatch(live, key, `--exec=${act}`, '--json');
  await until(() => second.out().includes('"done"'));
  second.child.kill('SIGKILL');
  live.advance(PHASE_MILLIS);
  const third = startWatch(live, key, `--exec=${act}`, '--json');
  await until(() => third.out().includes('"revealed"'));
  expect(JSON.parse(third.out())).toEqual({ type: 'revealed', chamberId });
  expect(await agent.forum.allocations(chamberId)).toMatchObject({ revealed: [{ did: agent.did }] });
});

it('watch retries a failing command while the duty is open', async () => {
  const { chamberId, folder, key } = await agentInTurn(live);
  const { out } = startWatch(
    live,
    key,
    `--exec=test -e ${folder}/ready || { touch ${folder}/ready; exit 3; }`,
    '--json',
  );
  await until(() => out().includes('"done"'));
  const events = out()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(events).toMatchObject([
    { type: 'due', chamberId, must: 'pass', phase: 'PROPOSAL' },
    {
      type: 'duty-failed',
      chamberId,
      must: 'pass',
      detail: expect.stringContaining('exit code 3; next attempt in 1 s'),
    },
    { type: 'due', chamberId },
    { type: 'done', chamberId },
  ]);
});

it('watch kills a command that hangs, including its children, even if they ignore SIGTERM', async () => {
  const { folder, key } = await agentInTurn(live);
  const pids = join(folder, 'pids');
  writeFileSync(pids, '');
  const hang = `trap '' TERM; echo $$ >> ${pids}; (echo $$ >> ${pids}; sleep 600) & sleep 600`;
  const { err, child } = startWatch(live, key, `--exec=${hang}`, '--time-limit=1s');
  await until(() => err().includes('timed out after 1000 ms'));
  for (const pid of pidsIn(pids)) expect(isAlive(pid)).toBe(false);
  expect(processTree(child.pid ?? 0)).toEqual([child.pid]);
});

it('watch reads all output of a command that floods it, and prints a limited part', async () => {
  const { chamberId, key } = await agentInTurn(live);
  const flood = "head -c 100000 /dev/zero | tr '\\0' x; yes no | head -c 30000000; exit 0";
  const { out } = startWatch(live, key, `--exec=${flood}`);
  await until(() => out().endsWith('done\n'));
  expect(out().length).toBeLessThan(300_000);
  expect(out()).toContain('(the rest of the output is not printed)\n');
  for (const line of out().trim().split('\n')) {
    expect(line.startsWith(`chamber ${chamberId}`)).toBe(true);
    expect(line.length).toBeLessThan(5_000);
  }
});

it.each([
  ['SIGTERM', 0, null],
  ['SIGKILL', null, 'SIGKILL'],
] as const)('the commands of watch end together with it after %s', async (signal, exitCode, signalCode) => {
  const { folder, key } = await agentInTurn(live);
  const pids = join(folder, 'pids');
  writeFileSync(pids, '');
  const { child, out } = startWatch(
    live,
    key,
    `--exec=echo $$ >> ${pids}; sleep 600 & echo $! >> ${pids}; echo on; wait`,
  );
  await until(() => out().includes('| on'));
  child.kill(signal);
  await once(child, 'exit');
  expect([child.exitCode, child.signalCode]).toEqual([exitCode, signalCode]);
  await eventually(() => expect(pidsIn(pids).filter(isAlive)).toEqual([]));
});

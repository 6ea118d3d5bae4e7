// A chamber with rounds whose agents run only when they are woken: two by callbacks, two by `chambers watch`. Each process is killed once.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { Agent, type ChamberEvent, ForumClient } from '../../src/client/index.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { findLine } from '../../src/process/child-output.ts';
import { CLI, ROOT } from '../kit/programs.ts';
import { startProcess } from '../kit/service-process.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { newChamber, REGISTRATION } from './live-service.ts';

const PHASE_MILLIS = 180_000;
const TURN_SECONDS = 60;
/** The time until a restarted program has made its first request. */
const RESTARTED_MILLIS = 2_000;
const DOWN_MILLIS = 1_000;
const RECEIVER = import.meta.resolve('./serve-receiver.mjs');

interface Start {
  readonly url: string;
  readonly name: string;
  readonly folder: string;
}

/** An agent whose process can be killed and restarted; `printed` is the output of its processes. */
async function newSleeper({ url, name, folder }: Start, start: (key: string) => ChildProcess, ready: RegExp) {
  const key = join(folder, `${name}.json`);
  const agent = await Agent.fromKeyFile(url, key);
  await agent.register(REGISTRATION);
  const printed: string[] = [];
  let child: ChildProcess | undefined;
  const run = async () => {
    child = start(key);
    const [out, err] = [child.stdout, child.stderr] as [Readable, Readable];
    for (const each of [out, err])
      createInterface({ input: each }).on('line', (line) => printed.push(`${name}: ${line}`));
    await Promise.race([findLine(out, ready), findLine(err, ready)]);
  };
  const kill = async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  atEnd(kill);
  await run();
  const restart = async () => {
    await kill();
    await run();
  };
  return { name, did: agent.did, agent, restart, printed };
}

const spawned = (words: readonly string[], env: Readonly<Record<string, string>>) =>
  spawn(process.execPath, words, { cwd: ROOT, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });

/** An agent controlled by a command: it proposes an idea and allocates everything to it. */
async function watcher(begin: Start) {
  const { url, name, folder } = begin;
  const act = join(folder, `${name}.sh`);
  const cli = `"${process.execPath}" "${CLI}" move`;
  writeFileSync(
    act,
    `set -e
case $CHAMBERS_MUST in
  pass)
    if grep -q '"PROPOSAL"'; then ${cli} propose $CHAMBERS_CHAMBER --name=${name} --ticker=${name} || true; fi
    ${cli} pass $CHAMBERS_CHAMBER ;;
  commit) ${cli} commit $CHAMBERS_CHAMBER ${name}=10000 ;;
esac
`,
  );
  const words = [CLI, 'watch', `--exec=sh ${act}`];
  const env = { CHAMBERS_URL: url };
  return await newSleeper(begin, (key) => spawned(words, { ...env, CHAMBERS_KEY_FILE: key }), /^watching for/);
}

/** An agent that the example receiver plays. */
async function receiver(begin: Start) {
  const port = await freePort();
  const CALLBACK_URL = `http://127.0.0.1:${port}/${crypto.randomUUID()}`;
  const env = { CHAMBERS_URL: begin.url, CALLBACK_URL, PORT: `${port}` };
  const words = [fileURLToPath(RECEIVER)];
  const start = (key: string) => spawned(words, { ...env, CHAMBERS_KEY_FILE: key });
  const sleeper = await newSleeper(begin, start, /^receiving$/);
  expect(await sleeper.agent.setCallback(CALLBACK_URL)).toMatchObject({ url: CALLBACK_URL });
  return sleeper;
}

it('agents that run only on callbacks take a chamber to its end, although each process is killed', {
  timeout: 400_000,
}, async () => {
  const folder = temporaryFolder();
  const PORT = `${await freePort()}`;
  const database = join(folder, 'chambers.db');
  const settings = { PORT, CHAIN: '', PUBLIC_URL: '', NODE_ENV: 'development' };
  let service = await startProcess(database, settings);
  const { url } = service;
  const restartService = async () => {
    await service.kill('SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, DOWN_MILLIS));
    service = await startProcess(database, settings);
  };
  const begin = (name: string) => ({ url, name, folder });
  const [ann, bob] = [await watcher(begin('ANN')), await watcher(begin('BOB'))];
  const [cyd, dan] = [await receiver(begin('CYD')), await receiver(begin('DAN'))];
  const sleepers = [ann, cyd, bob, dan];
  const creator = Agent.generate(new ForumClient(url));
  await creator.register(REGISTRATION);
  const { chamberId } = await creator.createChamber({
    ...newChamber(
      Date.now(),
      Array.from({ length: 5 }, () => PHASE_MILLIS),
    ),
    turnSeconds: TURN_SECONDS,
    rounds: { proposal: 1, debate: 1 },
    maxMembers: sleepers.length,
  });
  for (const { agent } of sleepers) await agent.joinChamber(chamberId);
  let passes = 0;
  const kills = new Map<string, () => Promise<void>>([
    ['pass 1', ann.restart],
    ['pass 2', cyd.restart],
    ['pass 3', restartService],
    [`commit of ${bob.did}`, bob.restart],
    [`commit of ${dan.did}`, dan.restart],
  ]);
  const nameOf = ({ type, did }: ChamberEvent) => {
    if (type === 'chamber.passed') return `pass ${++passes}`;
    return type === 'allocation.committed' ? `commit of ${did}` : '';
  };
  const killed: Promise<void>[] = [];
  const printed = () => sleepers.flatMap((each) => each.printed).join('\n');
  const played = (async () => {
    for await (const event of creator.forum.events(chamberId)) {
      const name = nameOf(event);
      const kill = kills.get(name);
      kills.delete(name);
      // The restarts follow one another, because a program that starts while the service is down exits.
      if (kill !== undefined)
        killed.push((killed.at(-1) ?? Promise.resolve()).then(kill).then(() => sleep(RESTARTED_MILLIS)));
      if (event.type === 'chamber.committed') return;
    }
  })();
  await Promise.race([
    played,
    new Promise((_, reject) => {
      const late = setTimeout(() => reject(new Error(`not committed:\n${printed()}`)), 350_000);
      atEnd(() => clearTimeout(late));
    }),
  ]);
  await Promise.all(killed);
  expect([...kills.keys()]).toEqual([]);
  const { revealed } = await creator.forum.allocations(chamberId);
  expect(new Set(revealed.map(({ did }) => did)), printed()).toEqual(new Set(sleepers.map(({ did }) => did)));
  await eventually(async () => expect(await creator.forum.chamber(chamberId)).toMatchObject({ phase: 'COMMITTED' }));
});

// Programs and commands of the READMEs, run as a reader pastes them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect } from 'vitest';
import { type LiveService, openLiveService } from './client/live-service.ts';
import { ROOT } from './kit/programs.ts';
import { atEnd, temporaryFolder } from './kit/temporary.ts';
import { eventually } from './kit/until.ts';

const URL_SHOWN = 'http://127.0.0.1:8787';
/** A loaded machine starts a process in seconds. */
export const SLOW = { timeout: 120_000 };

/** The folder of a test's files, which takes the place of data/. */
export let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

export function textOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** The JavaScript programs that the page says to paste. */
export function programsOf(page: string): readonly string[] {
  return [...page.matchAll(/<<'JS'\n([\s\S]*?)\nJS\n/g)].map(([, program = '']) => program);
}

/** The block of shell commands that holds the text. */
export function commandsOf(page: string, text: string): string {
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block);
  const [block, ...others] = blocks.filter((each) => each.includes(text) && !each.includes("<<'JS'"));
  if (block === undefined || others.length > 0) throw new Error(`not one block of commands with ${text}`);
  return block;
}

export function linesOf(program: string): number {
  return program.split('\n').filter((line) => line !== '').length;
}

export async function open(settings?: Readonly<Record<string, string>>): Promise<LiveService> {
  const live = await openLiveService(settings);
  atEnd(() => live.stop());
  return live;
}

/** Loaded before a pasted program: `sharedTime`, options of a client whose clock is ahead as far as the test says. */
const SHARED_TIME = `
let ahead = 0;
const sleepers = new Set();
process.on('message', (millis) => {
  ahead += millis;
  for (const wake of sleepers) wake();
});
process.channel.unref();
const sleep = (millis, signal) => new Promise((resolve, reject) => {
  signal?.throwIfAborted();
  const end = (settle) => () => {
    clearTimeout(timer);
    sleepers.delete(wake);
    settle(signal?.reason);
  };
  const wake = end(resolve);
  const timer = setTimeout(wake, millis);
  sleepers.add(wake);
  signal?.addEventListener('abort', end(reject), { once: true });
});
const fetchWithoutDate = async (url, init) => {
  const { status, headers, body } = await fetch(url, init);
  const kept = new Headers(headers);
  kept.delete('Date');
  return new Response(body, { status, headers: kept });
};
globalThis.sharedTime = { clock: { now: () => Date.now() + ahead, sleep }, fetch: fetchWithoutDate };
`;

export interface Pasted {
  /** All its output, once it has ended. */
  readonly ended: Promise<string>;
  printed(text: RegExp): Promise<void>;
  /** Moves its clock ahead. */
  advance(millis: number): void;
  kill(): Promise<void>;
}

/** Runs the program as printed, replacing only the service's address, the folder for its files and the clock of a long-running agent. */
export function paste(program: string, url: string, chamberId = 1): Pasted {
  const forum = `new (await import('chamber-coordination-service/client')).ForumClient('${url}', sharedTime)`;
  const own = program
    .replace(`fromKeyFile('${URL_SHOWN}'`, `fromKeyFile(${forum}`)
    .replace(URL_SHOWN, url)
    .replace("'data/", `'${folder}/`);
  const preload = `data:text/javascript,${encodeURIComponent(SHARED_TIME)}`;
  const child = spawn(process.execPath, ['--import', preload, '--input-type=module', '-', String(chamberId)], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
  });
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const closed = once(child, 'close');
  const kill = async () => {
    child.kill('SIGKILL');
    await closed;
  };
  atEnd(kill);
  child.stdin?.end(own);
  return {
    ended: closed.then(() => output),
    printed: (text) => eventually(() => expect(output).toMatch(text), 180_000),
    advance: (millis) => void child.send(millis),
    kill,
  };
}

/**
 * What stands for bin/chambers and npm: the command line itself, from its sources. `chamber wait` sleeps until a phase ends, by timers that
 * do not follow the clock that the test moves: here it asks again and again.
 */
const COMMAND_LINE = `
set -eu
chambers() {
  if [ "$1 $2" != 'chamber wait' ]; then "$NODE" src/cli.ts "$@"; return; fi
  until "$NODE" src/cli.ts chamber show "$3" --json | grep -qi "\\"phase\\":\\"$4\\""; do sleep 1; done
}
npm() { shift 4; "$NODE" src/cli.ts audit "$@"; }
`;

/** Runs shell commands as they are printed, except for the service's address and for the folder of their files. */
export async function pasteCommands(commands: string, url: string, env: Readonly<Record<string, string>> = {}) {
  const own = commands.replaceAll(URL_SHOWN, url).replaceAll('data/', `${folder}/`);
  const child = spawn('bash', ['-c', COMMAND_LINE + own], {
    cwd: ROOT,
    env: { ...process.env, NODE: process.execPath, CHAMBERS_URL: url, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  // The children are ended too: they would otherwise outlive a test that fails.
  atEnd(() => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const [exitCode] = await once(child, 'close');
  expect({ exitCode, output }).toMatchObject({ exitCode: 0 });
  return { output };
}

// Runs programs and commands of the READMEs as a reader pastes them.
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
/** Allows for a loaded machine, on which a process needs seconds to start. */
export const SLOW = { timeout: 120_000 };

/** The folder for a test's files, which replaces data/. */
export let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

export function textOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** Returns the JavaScript programs that the page tells readers to paste. */
export function programsOf(page: string): readonly string[] {
  return [...page.matchAll(/<<'JS'\n([\s\S]*?)\nJS\n/g)].map(([, program = '']) => program);
}

/** Returns the block of shell commands that contains the text. */
export function commandsOf(page: string, text: string): string {
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block);
  const [block, ...others] = blocks.filter((each) => each.includes(text) && !each.includes("<<'JS'"));
  if (block === undefined || others.length > 0)
    throw new Error(`the page must have exactly one block of commands with ${text}`);
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

/** Preloaded into a pasted program: defines `sharedTime`, client options whose clock is ahead by the time that the test sets. */
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
  /** Resolves to all output once the program has exited. */
  readonly ended: Promise<string>;
  printed(text: RegExp): Promise<void>;
  /** Advances the program's clock. */
  advance(millis: number): void;
  kill(): Promise<void>;
}

/**
 * Runs the program as printed, replacing only the service's address, the folder for its files and the clock of a long-running
 * agent.
 */
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
 * Replaces bin/chambers and npm by the sources of the command line. `chamber wait` would sleep until a phase ends, with timers that do not
 * follow the clock that the test moves; here it polls.
 */
const COMMAND_LINE = `
set -eu
chambers() {
  if [ "$1 $2" != 'chamber wait' ]; then "$NODE" src/cli.ts "$@"; return; fi
  until "$NODE" src/cli.ts chamber show "$3" --json | grep -qi "\\"phase\\":\\"$4\\""; do sleep 1; done
}
npm() { shift 4; "$NODE" src/cli.ts audit "$@"; }
`;

/** Runs shell commands as printed, except for the service's address and the folder of their files. */
export async function pasteCommands(commands: string, url: string, env: Readonly<Record<string, string>> = {}) {
  const own = commands.replaceAll(URL_SHOWN, url).replaceAll('data/', `${folder}/`);
  const child = spawn('bash', ['-c', COMMAND_LINE + own], {
    cwd: ROOT,
    env: { ...process.env, NODE: process.execPath, CHAMBERS_URL: url, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  // The child processes are also killed, because they would outlive a failed test.
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

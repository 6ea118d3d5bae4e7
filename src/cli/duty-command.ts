// Runs an operator's command for one of the agent's duties, in its own process group, with limits on time and output.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type { Duty } from '../client/watch-report.ts';
import { linkedSignal } from '../reading/waiting.ts';
import type { Millis } from '../vocabulary/values.ts';

const OUTPUT_CHARS_MAX = 262_144;
/** Accounts for the label and the line break that are printed with each line. */
const LINE_COST_CHARS = 20;
const LINE_CHARS_MAX = 4_096;
/** The time from SIGTERM to SIGKILL. */
const GRACE_MILLIS = 5_000;
/** The wait for the last output after the command has exited. */
const DRAIN_MILLIS = 1_000;

/**
 * When this program is killed, descriptor 3 closes and the shell ends the process group: otherwise a second command would run beside the
 * first one after a restart. `trap` keeps the shell waiting for the command after SIGTERM.
 */
const SCRIPT = `( trap '' TERM; read -r _ <&3; kill -TERM 0; sleep ${GRACE_MILLIS / 1_000}; kill -KILL 0 ) >/dev/null 2>&1 &
exec 3<&-
trap : TERM
eval "$1"`;

type OutputSource = 'stdout' | 'stderr';

export interface DutyCommand {
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeLimitMillis: Millis;
  readonly signal: AbortSignal;
  /** Called with each line of output; long lines come in parts. */
  readonly onLine: (line: string, source: OutputSource) => void;
}

/** Resolves if the command exits with 0; otherwise rejects once the command and its children have ended. */
export async function runForDuty(duty: Duty, { command, env, timeLimitMillis, signal, onLine }: DutyCommand) {
  const limit = linkedSignal(signal, timeLimitMillis);
  const child = start(command, {
    ...{ ...process.env, ...env },
    ...{ CHAMBERS_CHAMBER: `${duty.chamberId}`, CHAMBERS_MUST: duty.must },
  });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const end = () => terminateGroup(child);
  limit.signal.addEventListener('abort', end, { once: true });
  if (limit.signal.aborted) end();
  const output = new BoundedOutput(onLine);
  const drained = Promise.allSettled([output.read(child.stdout, 'stdout'), output.read(child.stderr, 'stderr')]);
  child.stdin?.on('error', () => {}).end(`${JSON.stringify(duty)}\n`);
  try {
    const [code, killedBy] = await exited;
    killGroup(child, 'SIGKILL');
    if (limit.signal.aborted) throw limit.signal.reason;
    if (code !== 0) throw new Error(code === null ? `the command was killed by ${killedBy}` : `exit code ${code}`);
  } finally {
    limit.signal.removeEventListener('abort', end);
    limit.release();
    await Promise.race([drained, new Promise((resolve) => setTimeout(resolve, DRAIN_MILLIS).unref())]);
    for (const stream of [child.stdout, child.stderr]) stream?.destroy();
  }
}

function start(command: string, env: NodeJS.ProcessEnv): ChildProcess {
  if (process.platform === 'win32') return spawn(command, { shell: true, env, stdio: 'pipe' });
  return spawn('/bin/sh', ['-c', SCRIPT, 'sh', command], {
    detached: true,
    env,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  });
}

function terminateGroup(child: ChildProcess): void {
  killGroup(child, 'SIGTERM');
  const kill = setTimeout(() => killGroup(child, 'SIGKILL'), GRACE_MILLIS);
  child.once('exit', () => clearTimeout(kill));
}

function killGroup(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  const { pid } = child;
  if (pid === undefined) return;
  try {
    if (process.platform === 'win32') child.kill(signal);
    else process.kill(-pid, signal);
  } catch {
    // The group has ended.
  }
}

/** Reads all output, so that the command never blocks, but passes on only the first part, in lines of a bounded length. */
class BoundedOutput {
  readonly #onLine: DutyCommand['onLine'];
  #left = OUTPUT_CHARS_MAX;

  constructor(onLine: DutyCommand['onLine']) {
    this.#onLine = onLine;
  }

  async read(stream: Readable | null, source: OutputSource): Promise<void> {
    let begun = '';
    for await (const chunk of stream?.setEncoding('utf8') ?? []) {
      if (this.#left === 0) continue;
      const lines = `${begun}${chunk}`.split('\n');
      begun = lines.pop() ?? '';
      for (const line of lines) this.#print(line, source);
      if (begun.length < LINE_CHARS_MAX) continue;
      this.#print(begun, source);
      begun = '';
    }
    if (begun !== '') this.#print(begun, source);
  }

  #print(line: string, source: OutputSource): void {
    for (let start = 0; this.#left > 0 && start <= line.length; start += LINE_CHARS_MAX) {
      const part = line.slice(start, start + LINE_CHARS_MAX);
      if (part === '' && start > 0) return;
      this.#left = Math.max(0, this.#left - part.length - LINE_COST_CHARS);
      this.#onLine(part, source);
      if (this.#left === 0) this.#onLine(`(the rest of the output is not printed)`, source);
    }
  }
}

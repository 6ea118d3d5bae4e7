// The measured process, as its parent controls it: its clock, figures, log and development chain.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { TestClock } from '../kit/clock.ts';
import { isAlive, processTree } from '../kit/process-tree.ts';
import type { Measured, Order } from './service.ts';

const PROGRAM = fileURLToPath(new URL('service.ts', import.meta.url));
/**
 * Settings for the soak: caches are full after the first quarter, agents may sign while the clock advances, and long-lived
 * readers stay connected.
 */
const SETTINGS = {
  ...{
    PORT: '0',
    LOG_LEVEL: 'info',
    VERIFIER_THREADS: '1',
    STATE_CACHE_BYTES_MAX: '1000000',
    RESPONSE_CACHE_BYTES_MAX: '1000000',
  },
  ...{ SIGNATURE_MAX_AGE_SECONDS: '86400', KEEP_ALIVE_SECONDS: '3600' },
};

export interface MeasuredService {
  readonly url: string;
  readonly clock: Pick<TestClock, 'read'>;
  readonly log: ServiceLog;
  readonly moveClock: (to: number) => Promise<void>;
  /** Measures the process; writes a heap snapshot to the path if one is given. */
  readonly measure: (snapshot?: string) => Promise<Measured>;
  /** Freezes the chain's process for a time, during which the service may replace it. */
  readonly freezeChain: (millis: number) => Promise<void>;
  readonly killChain: () => void;
  /** Stops the service, and returns its exit code. */
  readonly stop: () => Promise<number | string>;
}

export async function startMeasured(folder: string, store: Readonly<Record<string, string>>): Promise<MeasuredService> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = fork(PROGRAM, {
    cwd: folder,
    env: { PATH, NODE_COMPILE_CACHE, ...SETTINGS, ...store },
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
  const log = new ServiceLog(child.stderr as Readable);
  const clock = new TestClock();
  const receive = () =>
    Promise.race([
      once(child, 'message').then(([message]) => message),
      exited.then((exit) => Promise.reject(new Error(`the service ended with ${exit}: ${log.last}`))),
    ]);
  const url: string = await receive();
  const ask = (order: Order) => {
    child.send(order);
    return receive();
  };
  return {
    url,
    clock,
    log,
    moveClock: async (time) => {
      await ask({ time });
      clock.set(time);
    },
    measure: (snapshot) => ask({ snapshot }),
    freezeChain: async (millis) => {
      const chain = chainOf(child);
      process.kill(chain, 'SIGSTOP');
      await sleep(millis);
      if (isAlive(chain)) process.kill(chain, 'SIGCONT');
    },
    killChain: () => void process.kill(chainOf(child), 'SIGKILL'),
    stop: () => {
      if (child.connected) child.disconnect();
      return exited;
    },
  };
}

/** Finds Anvil's process. */
function chainOf({ pid = 0 }: ChildProcess): number {
  const found = processTree(pid).find((each) => readFileSync(`/proc/${each}/comm`, 'utf8').trim() === 'anvil');
  if (found === undefined) throw new Error('the service has no development chain');
  return found;
}

/** A measurement can stop a service on a busy machine for longer than its lease, which the service then loses and acquires again. */
const LEASE_LINE = /"msg":"relayer (leading|standing by):/;

/** Counts the lines of the service's own log. */
export class ServiceLog {
  lines = 0;
  last = '';
  /** Counts how often each text was logged since the last clear(), ignoring times. */
  readonly #repeats = new Map<string, number>();

  constructor(stream: Readable) {
    createInterface({ input: stream }).on('line', (line) => {
      this.last = line;
      if (LEASE_LINE.test(line)) return;
      this.lines++;
      const text = line.replace(/"time":\d+,/, '');
      this.#repeats.set(text, (this.#repeats.get(text) ?? 0) + 1);
    });
  }

  /** Returns the texts that were logged too often, with their numbers, and resets the counts. */
  takeRepeated(max: number): readonly string[] {
    const repeated = [...this.#repeats].filter(([, times]) => times > max);
    this.#repeats.clear();
    return repeated.map(([text, times]) => `${times} times in one round: ${text}`);
  }
}

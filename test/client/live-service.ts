// A real service on a free port for the client's tests: in memory, without a chain, with a clock that tests advance.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import { Agent, ForumClient, type ForumClientOptions, type NewChamber } from '../../src/client/index.ts';
import { pause } from '../../src/reading/waiting.ts';
import type { Service } from '../../src/service/start.ts';
import { DEADLINES } from '../../src/vocabulary/values.ts';
import { AdvancedClock, passing } from '../kit/clock.ts';
import { fetchWithoutDate } from '../kit/fetch-without-date.ts';
import { openService, type Settings } from '../kit/open-service.ts';
import { PYTHON_CLIENT } from '../kit/python.ts';
import { atEnd } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';

export const WALLET = `0x${'11'.repeat(20)}`;
export const REGISTRATION = { walletAddress: WALLET, operatorEmail: 'agent@example.org' };

const HOUR_MILLIS = 3_600_000;
const MOVED_CLOCK = import.meta.resolve('../kit/moved-clock.ts');
const PYTHON_MOVED_CLOCK = fileURLToPath(new URL('../kit/python', import.meta.url));

export interface LiveService {
  readonly baseUrl: string;
  /** A folder for files of the tests; it is removed when the service stops. */
  readonly folder: string;
  readonly service: Service;
  readonly forum: ForumClient;
  /** Options for clients that share the service's clock, so that advance() also ends their waits. */
  readonly sharedTime: ForumClientOptions;
  /** Variables for programs, in Node or Python, that share the service's clock. */
  readonly sharedTimeEnv: Readonly<Record<string, string>>;
  /** Advances the service's clock. */
  advance(millis: number): void;
  now(): number;
  /** Resolves when this many clients with the shared clock are waiting. */
  sleeping(count: number): Promise<void>;
  stop(): Promise<void>;
}

export async function openLiveService(settings: Settings = {}): Promise<LiveService> {
  const clock = new AdvancedClock();
  const folder = mkdtempSync(join(tmpdir(), 'live-'));
  const clockFile = join(folder, 'clock');
  const saveClock = () => {
    writeFileSync(`${clockFile}.next`, `${clock.aheadMillis}`);
    renameSync(`${clockFile}.next`, clockFile);
  };
  saveClock();
  const now = clock.read;
  const service = await openService(settings, { clock: passing(clock.read) });
  const sleepers = new Set<() => void>();
  const sleep = async (millis: number, signal?: AbortSignal) => {
    const wake = new AbortController();
    const wakeUp = () => wake.abort();
    sleepers.add(wakeUp);
    signal?.addEventListener('abort', wakeUp, { once: true });
    await pause(millis, wake.signal).catch(() => {});
    signal?.removeEventListener('abort', wakeUp);
    sleepers.delete(wakeUp);
    signal?.throwIfAborted();
  };
  const advance = (millis: number) => {
    clock.advance(millis);
    saveClock();
    for (const wakeUp of sleepers) wakeUp();
    sleepers.clear();
  };
  return {
    baseUrl: service.url,
    folder,
    service,
    forum: new ForumClient(service.url),
    sharedTime: { clock: { now, sleep }, fetch: fetchWithoutDate },
    sharedTimeEnv: {
      NODE_OPTIONS: `--import=${MOVED_CLOCK}`,
      PYTHONPATH: `${PYTHON_MOVED_CLOCK}:${PYTHON_CLIENT}`,
      TEST_CLOCK_FILE: clockFile,
    },
    advance,
    now,
    sleeping: async (count) => {
      await until(() => sleepers.size >= count);
    },
    stop: async () => {
      await service.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** A service that stops at the end of the test. */
export async function runLiveService(settings: Settings = {}): Promise<LiveService> {
  const live = await openLiveService(settings);
  atEnd(live.stop);
  return live;
}

/** A service for all tests of a file or a describe block; its members are available once it has started. */
export function sharedLiveService(settings: Settings = {}): LiveService {
  const live = {} as LiveService;
  beforeAll(async () => {
    Object.assign(live, await openLiveService(settings));
  });
  // If another beforeAll fails, Vitest does not call the function that this one returns.
  afterAll(() => live.stop?.());
  return live;
}

/** A registered agent, with the service's clock unless the options set another. */
export async function newAgent(live: LiveService, options: ForumClientOptions = live.sharedTime): Promise<Agent> {
  const agent = Agent.generate(new ForumClient(live.baseUrl, options));
  await agent.register(REGISTRATION);
  return agent;
}

/** Returns the settings of a chamber whose phases last the given number of milliseconds each; by default an hour. */
export function newChamber(now: number, phaseMillis: readonly number[] = []): NewChamber {
  let at = now;
  const deadlines = DEADLINES.map((name, phase) => {
    at += phaseMillis[phase] ?? HOUR_MILLIS;
    return [name, new Date(at)] as const;
  });
  return { name: 'Test', ...(Object.fromEntries(deadlines) as Record<(typeof DEADLINES)[number], Date>) };
}

export const PHASE_MILLIS = HOUR_MILLIS;

// A real service on a free port for the client's tests: in memory, without a chain, its clock moved by hand.
import { pino } from 'pino';
import { Agent, ForumClient, type ForumClientOptions, type NewChamber } from '../../src/client/index.ts';
import { readConfig } from '../../src/config.ts';
import { type Service, startService } from '../../src/server.ts';
import { DEADLINES } from '../../src/vocabulary/values.ts';

export const WALLET = `0x${'11'.repeat(20)}`;
export const REGISTRATION = { walletAddress: WALLET, operatorEmail: 'agent@example.org' };

const HOUR_MILLIS = 3_600_000;

export interface Stage {
  readonly baseUrl: string;
  readonly service: Service;
  readonly forum: ForumClient;
  /** Moves the service's clock ahead. */
  advance(millis: number): void;
  now(): number;
  stop(): Promise<void>;
}

export async function openStage(settings: Readonly<Record<string, string>> = {}): Promise<Stage> {
  let aheadMillis = 0;
  const now = () => Date.now() + aheadMillis;
  const env = { PORT: '0', DATABASE_PATH: ':memory:', CHAIN: 'none', LOG_LEVEL: 'silent', ...settings };
  const service = await startService({
    config: readConfig(env),
    logger: pino({ level: 'silent' }),
    version: 'test',
    clock: now,
    onFatal: (error) => {
      throw error;
    },
  });
  const advance = (millis: number) => {
    aheadMillis += millis;
  };
  return {
    baseUrl: service.url,
    service,
    forum: new ForumClient(service.url),
    advance,
    now,
    stop: () => service.stop(),
  };
}

/** A registered agent. */
export async function newAgent(stage: Stage, options: ForumClientOptions = {}): Promise<Agent> {
  const agent = Agent.generate(new ForumClient(stage.baseUrl, options));
  await agent.register(REGISTRATION);
  return agent;
}

/** A chamber whose phases last so many milliseconds each, an hour without a word. */
export function newChamber(now: number, phaseMillis: readonly number[] = []): NewChamber {
  let at = now;
  const deadlines = DEADLINES.map((name, phase) => {
    at += phaseMillis[phase] ?? HOUR_MILLIS;
    return [name, new Date(at)] as const;
  });
  return { name: 'Test', ...(Object.fromEntries(deadlines) as Record<(typeof DEADLINES)[number], Date>) };
}

export const PHASE_MILLIS = HOUR_MILLIS;

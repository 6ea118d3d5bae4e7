// The faults that scenarios inject into nodes and PostgreSQL during the load.
import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgres } from '../kit/postgres-server.ts';
import { killTree } from '../kit/process-tree.ts';
import type { Cluster, ServiceNode } from './cluster.ts';
import { openMessageProxy } from './message-proxy.ts';
import { findPrograms, startPair } from './standby.ts';

const NODE_KILL_EVERY_MS = 3_000;
const FREEZE_MS = 10_000;
const POSTGRES_DOWN_MS = 500;
const POSTGRES_KILL_EVERY_MS = 10_000;
const CUT_EVERY_MS = 100;

export interface RunningScenario {
  readonly databaseUrl: string;
  /** Injects faults until the time is over, and then repairs everything. Returns the number of faults. */
  readonly disturb: (cluster: Cluster, time: Time) => Promise<number>;
  readonly notes: () => readonly string[];
  readonly close: () => Promise<void>;
}

export interface Time {
  readonly millis: number;
  /** Waits, at most until the time is over; returns whether any time is left. */
  readonly rest: (millis: number) => Promise<boolean>;
}

/** Returns undefined if a program is missing. Without a `databaseUrl`, it starts its own server. */
export type Scenario = (databaseUrl?: string) => Promise<RunningScenario | undefined>;

/** The scenario in which no request may fail. */
export const CALM = 'calm';

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  [CALM]: onServer(async (_, { millis, rest }) => {
    await rest(millis);
    return 0;
  }),

  'kill-node': onServer(async ({ nodes }, { millis, rest }) => {
    let kills = 0;
    let starting = Promise.resolve();
    for (; await rest(Math.min(NODE_KILL_EVERY_MS, millis / 3)); kills++) {
      await starting;
      const node = nodes[kills % nodes.length] as ServiceNode;
      await node.kill();
      starting = node.start();
      // Prevents an unhandled rejection; the start is awaited before the next kill.
      starting.catch(() => {});
    }
    await starting;
    return kills;
  }),

  'freeze-node': onServer(async ({ nodes }, { millis, rest }) => {
    const freezeMillis = Math.min(FREEZE_MS, millis / 4);
    let freezes = 0;
    for (; await rest(freezeMillis); freezes++) {
      const node = nodes[freezes % nodes.length] as ServiceNode;
      node.signal('SIGSTOP');
      await sleep(freezeMillis);
      node.signal('SIGCONT');
    }
    return freezes;
  }),

  'kill-postgres': async () => {
    const server = await startPostgres();
    return {
      databaseUrl: server.url,
      notes: () => [],
      close: server.stop,
      disturb: async (_, { millis, rest }) => {
        let kills = 0;
        for (; await rest(Math.min(POSTGRES_KILL_EVERY_MS, millis / 3)); kills++) {
          killTree(server.pid());
          await sleep(POSTGRES_DOWN_MS);
          await server.restart();
        }
        return kills;
      },
    };
  },

  failover: async () => {
    const programs = findPrograms();
    if (programs === undefined) return undefined;
    const pair = await startPair(programs);
    const notes: string[] = [];
    return {
      databaseUrl: pair.url,
      notes: () => notes,
      close: pair.stop,
      disturb: async (_, { millis, rest }) => {
        await rest(millis / 2);
        const killedAt = performance.now();
        await pair.failOver();
        notes.push(`standby promoted ${Math.round(performance.now() - killedAt)} ms after the primary's death`);
        await rest(millis);
        return 1;
      },
    };
  },

  'cut-commit': async (databaseUrl) => {
    const server = databaseUrl === undefined ? await startPostgres() : undefined;
    const proxy = await openMessageProxy(databaseUrl ?? (server?.url as string), CUT_EVERY_MS);
    return {
      databaseUrl: proxy.url,
      notes: () => [`cuts after 0, 1, 2 … messages of an append: ${proxy.cuts.join(' ')}`],
      disturb: async (_, { millis, rest }) => {
        proxy.begin();
        await rest(millis);
        proxy.end();
        return proxy.cuts.reduce((sum, count) => sum + count, 0);
      },
      close: async () => {
        proxy.close();
        await server?.stop();
      },
    };
  },
};

function onServer(disturb: RunningScenario['disturb']): Scenario {
  return async (databaseUrl) => {
    const server = databaseUrl === undefined ? await startPostgres() : undefined;
    const close = async () => void (await server?.stop());
    return { databaseUrl: databaseUrl ?? (server?.url as string), disturb, notes: () => [], close };
  };
}

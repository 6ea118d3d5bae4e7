// Readers that stay connected for a whole run: of the lines of all chambers, and of agents' todo lists.
import { Agent as Connections } from 'node:http';
import type { Agent } from '../../src/client/index.ts';
import { fetchOver } from './http.ts';
import type { MeasuredService } from './measured-service.ts';
import { clientOver } from './players.ts';
import { readSocket, readSource } from './streams.ts';

const READERS_EACH = 12;

export interface Companions {
  /** Returns streams that ended by themselves, and readers of all chambers that did not receive the same lines. */
  readonly problems: () => readonly string[];
  readonly close: () => void;
}

/** Makes the agents with these seeds follow their todo lists. */
export function openCompanions(service: MeasuredService, seeds: readonly Uint8Array[]): Companions {
  const { url } = service;
  const over = new AbortController();
  const { signal } = over;
  const connections = new Connections({ keepAlive: true });
  const fetch = fetchOver(connections);
  const counts = Array.from({ length: 2 * READERS_EACH }, () => 0);
  const problems: string[] = [];
  const expectEndless = (name: string, reading: Promise<unknown>) => {
    reading.then(
      () => !signal.aborted && problems.push(`${name} ended`),
      (error) => !signal.aborted && problems.push(`${name} failed: ${error}`),
    );
  };
  for (const at of counts.keys()) {
    const onEvent = () => {
      counts[at] = (counts[at] ?? 0) + 1;
    };
    if (at < READERS_EACH)
      expectEndless('GET /events', readSource(fetch, `${url}/events?after=0`, { signal, onEvent }));
    else expectEndless('WS /events', readSocket(`${url}/events?after=0`, { signal, onEvent }));
  }
  for (const seed of seeds)
    expectEndless('a todo stream', readTodos(clientOver(service, connections).player(seed).agent, signal));
  return {
    problems: () =>
      new Set(counts).size === 1 ? problems : [...problems, `readers of all chambers received ${counts} lines`],
    close: () => {
      over.abort();
      connections.destroy();
    },
  };
}

async function readTodos(agent: Agent, signal: AbortSignal): Promise<void> {
  for await (const _ of agent.todos({ signal }));
}

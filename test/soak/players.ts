// Agents of the client library with the soak's connections and clock.
import { Agent as Connections } from 'node:http';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { pause } from '../../src/reading/waiting.ts';
import { Signer } from '../kit/signer.ts';
import { fetchOver } from './http.ts';
import type { MeasuredService } from './measured-service.ts';

export interface Player {
  readonly agent: Agent;
  /** Returns a signer with the same key, for requests that the client library does not make. */
  readonly signer: Signer;
}

/** Returns a client without a key, and the agent of a seed. */
export function clientOver({ url, clock }: MeasuredService, connections: Connections) {
  const forum = new ForumClient(url, { clock: { now: clock.read, sleep: pause }, fetch: fetchOver(connections) });
  const player = (seed: Uint8Array): Player => ({ agent: Agent.fromSeed(forum, seed), signer: new Signer(seed) });
  return { forum, player };
}

/** Returns the agents' seeds. */
export async function registerAgents(service: MeasuredService, count: number): Promise<readonly Uint8Array[]> {
  const connections = new Connections({ keepAlive: true });
  const { player } = clientOver(service, connections);
  const seeds = Array.from({ length: count }, () => crypto.getRandomValues(new Uint8Array(32)));
  await Promise.all(seeds.map((seed) => player(seed).agent.register(REGISTRATION)));
  connections.destroy();
  return seeds;
}

const REGISTRATION = { walletAddress: `0x${'11'.repeat(20)}`, operatorEmail: 'agent@example.org' };

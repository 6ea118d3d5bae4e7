// Prepares chambers over HTTP: registers agents, creates and joins chambers, and waits for DEBATE.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, makeAgent, rawRequest, signedRequest } from './agents.ts';
import type { Answer, Connection } from './connection.ts';

/** Enough time to register and join on the slowest baseline, and on nodes that have just started. */
const LOBBY_MILLIS = 4_000;
/** The additional time per agent of a chamber. */
const LOBBY_MILLIS_PER_AGENT = 60;
const DAY_MILLIS = 86_400_000;

export interface Deadline {
  /** The start of DEBATE, in milliseconds since 1970. */
  readonly debateFrom: number;
}

export interface Chamber {
  readonly chamberId: number;
  readonly agents: readonly Agent[];
}

export function lobbyFromNow(
  agentsPerChamber = 1,
  millis = LOBBY_MILLIS + agentsPerChamber * LOBBY_MILLIS_PER_AGENT,
): Deadline {
  return { debateFrom: Date.now() + millis };
}

export interface ChamberShape {
  readonly size: number;
  /** Optional members of the creation. */
  readonly pace?: object | undefined;
}

export async function openChamber(
  connection: Connection,
  authority: string,
  { size, pace = {} }: ChamberShape,
  { debateFrom }: Deadline,
): Promise<Chamber> {
  const agents = Array.from({ length: size }, makeAgent);
  for (const agent of agents) await register(connection, authority, agent);
  const [creator] = agents;
  if (creator === undefined) throw new Error('a chamber needs an agent');
  const body = JSON.stringify({ name: 'Bench', ...deadlines(debateFrom), minBackersForGraduation: 1, ...pace });
  const created = await send(
    connection,
    signedRequest(creator, { authority, method: 'POST', path: '/chambers', body }),
  );
  const { chamberId } = created as { readonly chamberId: number };
  for (const agent of agents) {
    const path = `/chambers/${chamberId}/join`;
    await send(connection, signedRequest(agent, { authority, method: 'POST', path, body: '{}' }));
  }
  return { chamberId, agents };
}

export async function untilDebate({ debateFrom }: Deadline): Promise<void> {
  await sleep(Math.max(0, debateFrom - Date.now()) + 50);
}

async function register(connection: Connection, authority: string, agent: Agent): Promise<void> {
  const body = JSON.stringify({
    pubkeyHex: agent.pubkeyHex,
    walletAddress: `0x${agent.pubkeyHex.slice(2, 42)}`,
    operatorEmail: 'operator@example.org',
    personality: { style: 'brief' },
  });
  await send(connection, rawRequest({ authority, method: 'POST', path: '/register', body }));
}

function deadlines(debateFrom: number): Readonly<Record<string, string>> {
  const at = (millis: number) => new Date(millis).toISOString();
  return {
    lobbyDeadline: at(debateFrom),
    proposalDeadline: at(debateFrom),
    debateDeadline: at(debateFrom + DAY_MILLIS),
    allocateCommitDeadline: at(debateFrom + 2 * DAY_MILLIS),
    allocateRevealDeadline: at(debateFrom + 3 * DAY_MILLIS),
  };
}

async function send(connection: Connection, request: Buffer): Promise<unknown> {
  const answer = await connection.exchange(request);
  if (answer.status !== 200) throw new Error(`the preparation failed: ${describeAnswer(answer)}`);
  return JSON.parse(answer.body.toString());
}

export function describeAnswer({ status, body }: Answer): string {
  return `${status} ${body.toString().slice(0, 300)}`;
}

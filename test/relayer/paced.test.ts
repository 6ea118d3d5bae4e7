// Agents through the client play chambers with rounds until the chain has their roots. The deadlines are an hour away each, on the real
// clock: an agent or a relayer that waits for one never ends.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Agent, ForumClient, type Phase } from '../../src/client/index.ts';
import type { Service } from '../../src/service/start.ts';
import { newChamber, REGISTRATION } from '../client/live-service.ts';
import { openService } from '../kit/open-service.ts';
import { until } from '../kit/until.ts';

const AGENTS = 8;
/** PACED_CHAMBERS=100 plays as many in parallel. */
const CHAMBERS = Number(process.env['PACED_CHAMBERS'] ?? 10);
const CHAMBERS_ALONE = 3;
const MILLIS_PER_CHAMBER = 20_000;

let service: Service;
let agents: readonly Agent[];
beforeAll(async () => {
  service = await openService({ CHAIN: '' }, { clock: Date.now });
  agents = await Promise.all(Array.from({ length: AGENTS }, newAgent));
}, 60_000);
afterAll(() => service.stop());

it(`${AGENTS} agents play ${CHAMBERS} chambers at once`, {
  timeout: 60_000 + CHAMBERS * MILLIS_PER_CHAMBER,
}, async () => {
  const played = await Promise.all(Array.from({ length: CHAMBERS }, play));
  for (const { chamberId } of played) {
    expect(await service.forum.chamber(chamberId)).toMatchObject({ state: { reveals: { size: AGENTS } } });
  }
});

it('a chamber alone is sent to the chain at once', {
  timeout: 60_000 + CHAMBERS_ALONE * MILLIS_PER_CHAMBER,
}, async () => {
  const waits: number[] = [];
  for (let count = 0; count < CHAMBERS_ALONE; count++) waits.push((await play()).sentMillis);
  const [median] = waits.toSorted((a, b) => a - b).slice(CHAMBERS_ALONE >> 1);
  process.stdout.write(`from the last reveal's response to the sent transaction: median ${median} ms of ${waits}\n`);
});

async function newAgent(): Promise<Agent> {
  const agent = Agent.generate(service.url);
  await agent.register(REGISTRATION);
  return agent;
}

/** Resolves when the chamber is committed. */
async function play(): Promise<{ readonly chamberId: number; readonly sentMillis: number }> {
  const [creator] = agents as readonly [Agent];
  const { chamberId } = await creator.createChamber({
    ...newChamber(Date.now()),
    rounds: { proposal: 1, debate: 1 },
    turnSeconds: 300,
    maxMembers: AGENTS,
  });
  for (const agent of agents) await agent.joinChamber(chamberId);
  const reveals = await Promise.all(agents.map((agent, index) => takePart(agent, chamberId, `IDEA${index}`)));
  const revealedAt = Math.max(...reveals);
  const sentAt = await commitSentAt(chamberId);
  await reaches(creator, chamberId, 'COMMITTED');
  return { chamberId, sentMillis: sentAt - revealedAt };
}

/** Resolves with the instant of the response to its reveal. */
async function takePart(agent: Agent, chamberId: number, ticker: string): Promise<number> {
  for await (const { phase } of agent.turns(chamberId)) {
    if (phase === 'PROPOSAL') await agent.propose(chamberId, { name: ticker, ticker });
    else await agent.debate(chamberId, { comment: `for ${ticker}` });
    await agent.pass(chamberId);
  }
  await agent.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
  await reaches(agent, chamberId, 'ALLOCATE_REVEAL');
  await agent.reveal(chamberId);
  return Date.now();
}

async function reaches(agent: Agent, chamberId: number, expected: Phase): Promise<void> {
  for await (const { phase } of agent.forum.watch(chamberId)) if (phase === expected) return;
}

/** When the chain knew the transaction at the latest. */
async function commitSentAt(chamberId: number): Promise<number> {
  const forum = new ForumClient(service.url);
  const { chain } = await forum.health();
  for await (const event of forum.events(chamberId)) {
    if (event.type !== 'relay.commit_submitted') continue;
    const { txHash } = event.payload;
    await until(async () => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getTransactionByHash', params: [txHash] });
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(chain?.rpcUrl ?? '', { method: 'POST', headers, body });
      return ((await response.json()) as { readonly result: object | null }).result !== null;
    });
    return Date.now();
  }
  throw new Error(`the stream of chamber ${chamberId} ended`);
}

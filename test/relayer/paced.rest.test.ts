// Agents in their own processes play chambers with rounds until the roots are on the chain. The deadlines are hours away on the real clock,
// so the test fails if an agent or the relayer waits for a deadline.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Agent } from '../../src/client/index.ts';
import { openRpc } from '../../src/relayer/rpc.ts';
import type { Service } from '../../src/service/start.ts';
import { newChamber, REGISTRATION } from '../client/live-service.ts';
import { passing } from '../kit/clock.ts';
import { openService } from '../kit/open-service.ts';
import { until } from '../kit/until.ts';
import type { ChambersToPlay, Played } from './paced-agent.ts';

const AGENTS = 8;
/** PACED_CHAMBERS=100 plays as many in parallel. */
const CHAMBERS = Number(process.env['PACED_CHAMBERS'] ?? 4);
const CHAMBERS_ALONE = 2;
const MILLIS_PER_CHAMBER = 20_000;
const PROGRAM = fileURLToPath(new URL('./paced-agent.ts', import.meta.url));

let service: Service;
let creator: Agent;
let agents: readonly ChildProcess[];
beforeAll(async () => {
  service = await openService({ CHAIN: '' }, { clock: passing(Date.now) });
  creator = Agent.generate(service.url);
  await creator.register(REGISTRATION);
  agents = Array.from({ length: AGENTS }, (_, index) => fork(PROGRAM, [service.url, `IDEA${index}`]));
  await Promise.all(agents.map((agent) => once(agent, 'message')));
}, 60_000);
afterAll(async () => {
  for (const agent of agents) agent.kill();
  await service.stop();
});

it(`${AGENTS} agents play ${CHAMBERS} chambers at once`, {
  timeout: 60_000 + CHAMBERS * MILLIS_PER_CHAMBER,
}, async () => {
  const chamberIds = await Promise.all(Array.from({ length: CHAMBERS }, create));
  await play(chamberIds);
  const waits = await Promise.all(chamberIds.map(committedMillis));
  const median = medianOf(waits);
  process.stdout.write(
    `from the last reveal to chamber.committed: median ${median} ms, most ${Math.max(...waits)} ms\n`,
  );
  for (const chamberId of chamberIds) {
    expect(await service.forum.chamber(chamberId)).toMatchObject({ state: { reveals: { size: AGENTS } } });
  }
});

it('a single chamber is committed at once', {
  timeout: 60_000 + CHAMBERS_ALONE * MILLIS_PER_CHAMBER,
}, async () => {
  const waits: number[] = [];
  for (let count = 0; count < CHAMBERS_ALONE; count++) {
    const chamberId = await create();
    const sent = commitSentAt(chamberId);
    const [revealedAt = 0] = await play([chamberId]);
    waits.push((await sent) - revealedAt);
  }
  process.stdout.write(
    `from the last reveal's response to the sent transaction: median ${medianOf(waits)} ms of ${waits}\n`,
  );
});

async function create(): Promise<number> {
  const { chamberId } = await creator.createChamber({
    ...newChamber(Date.now()),
    rounds: { proposal: 1, debate: 1 },
    turnSeconds: 300,
    maxMembers: AGENTS,
  });
  return chamberId;
}

/** Resolves to the times of the last reveals, when all agents have revealed in all chambers. */
async function play(chamberIds: readonly number[]): Promise<readonly number[]> {
  const all = await Promise.all(
    agents.map(async (agent) => {
      const reply = Promise.race([
        once(agent, 'message'),
        once(agent, 'exit').then(([code]) => Promise.reject(new Error(`an agent exited with ${code}`))),
      ]);
      agent.send({ chamberIds } satisfies ChambersToPlay);
      const [{ revealedAt }] = (await reply) as [Played];
      return revealedAt;
    }),
  );
  return chamberIds.map((chamberId) => Math.max(...all.map((revealedAt) => revealedAt[chamberId] ?? 0)));
}

/** Resolves to the time from the last reveal to chamber.committed, by the service's clock. */
async function committedMillis(chamberId: number): Promise<number> {
  let revealedAt = 0;
  for await (const { type, ts } of creator.forum.events(chamberId)) {
    if (type === 'allocation.revealed') revealedAt = Date.parse(ts);
    if (type === 'chamber.committed') return Date.parse(ts) - revealedAt;
  }
  throw new Error(`the stream of chamber ${chamberId} ended`);
}

/** Resolves to the time at which the chain has the transaction. */
async function commitSentAt(chamberId: number): Promise<number> {
  const { chain } = await creator.forum.health();
  for await (const event of creator.forum.events(chamberId)) {
    if (event.type !== 'relay.commit_submitted') continue;
    const { txHash } = event.payload;
    const rpc = openRpc(chain?.rpcUrl ?? '');
    await until(async () => (await rpc.request('eth_getTransactionByHash', [txHash])) !== null);
    rpc.close();
    return Date.now();
  }
  throw new Error(`the stream of chamber ${chamberId} ended`);
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

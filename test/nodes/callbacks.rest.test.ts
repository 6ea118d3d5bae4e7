// Three nodes are killed and frozen, and receivers fail at random. Each duty must be delivered before it ends if its receiver was
// healthy for the last 30 s. CALLED_AGENTS=1000 plays more agents.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { deadlinesFrom } from '../kit/chambers.ts';
import { temporaryPostgres } from '../kit/postgres.ts';
import { MAIN } from '../kit/programs.ts';
import { Random } from '../kit/random.ts';
import { type Delivery, openReceiver, type Receiver } from '../kit/receiver.ts';
import { Signer } from '../kit/signer.ts';
import { registrationOf } from '../kit/test-service.ts';
import { prepare, send } from '../kit/wire.ts';
import { type Cluster, PUBLIC_URL, type ServiceNode, startCluster } from './cluster.ts';

const { CALLED_AGENTS = '60', CALLED_SEED = '1' } = process.env;
const AGENTS = Number(CALLED_AGENTS);
const MEMBERS = 5;
/** After LOBBY, each member has two turns; then come the commitments. */
const TURN_MS = 10_000;
const DEBATE_MS = MEMBERS * TURN_MS;
const COMMIT_MS = 60_000;
const HEALTHY_MS = 30_000;
/** A receiver sees a delivery this much later than the service sends it. */
const LATE_MS = 8_000;

interface Agent {
  readonly by: Signer;
  readonly receiver: Receiver;
  readonly got: { readonly at: number; readonly isAccepted: boolean; readonly delivery: Delivery }[];
  /** The time until which the receiver fails; 0 while it is healthy. */
  failsUntil: number;
}

class World {
  readonly random = new Random(Number(CALLED_SEED));
  readonly agents: Agent[] = [];
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Sends the same request to one node after another until one responds. */
  async call(method: string, path: string, by: Signer | undefined, body: unknown): Promise<Record<string, unknown>> {
    const wire = prepare(method, path, { by, body, publicUrl: PUBLIC_URL });
    for (let tries = 0; ; tries++) {
      const node = this.#cluster.nodes[this.random.below(this.#cluster.nodes.length)] as ServiceNode;
      const answer = await send(node.url, wire, AbortSignal.timeout(8_000)).catch(() => undefined);
      if (answer?.status === 200) return answer.body as Record<string, unknown>;
      if (tries > 20) throw new Error(`${method} ${path}: ${answer?.status} ${JSON.stringify(answer?.body)}`);
      await sleep(300);
    }
  }

  async addAgent(): Promise<void> {
    const [by, receiver] = [new Signer(), await openReceiver()];
    await this.call('POST', '/register', undefined, registrationOf(by));
    await this.call('PUT', '/me/callback', by, { url: receiver.url });
    const agent: Agent = { by, receiver, got: [], failsUntil: 0 };
    receiver.respond = (delivery, response) => {
      const isAccepted = Date.now() >= agent.failsUntil;
      agent.got.push({ at: Date.now(), isAccepted, delivery });
      if (isAccepted) response.writeHead(204).end();
      else if (this.random.below(2) === 0) response.writeHead(503).end();
      else response.socket?.destroy();
    };
    this.agents.push(agent);
  }
}

it('the nodes deliver every duty of a receiver that was healthy at its end, under one id, and no duty after its end', {
  timeout: 600_000,
}, async () => {
  const databaseUrl = await temporaryPostgres();
  const cluster = await startCluster({
    ...{ databaseUrl, nodes: 3, program: MAIN },
    settings: { CALLBACK_CHALLENGES_PER_ADDRESS_PER_HOUR: '100000' },
  });
  try {
    const world = new World(cluster);
    for (let from = 0; from < AGENTS; from += 20)
      await Promise.all(Array.from({ length: Math.min(20, AGENTS - from) }, () => world.addAgent()));
    const lobbyEnd = Date.now() + 15_000 + AGENTS * 60;
    const ends = [0, DEBATE_MS, DEBATE_MS, DEBATE_MS + COMMIT_MS, DEBATE_MS + COMMIT_MS].map((ms) => lobbyEnd + ms);
    const names = Object.keys(deadlinesFrom(0));
    const deadlines = Object.fromEntries(names.map((name, index) => [name, new Date(ends[index] ?? 0).toISOString()]));
    for (let from = 0; from < AGENTS; from += MEMBERS) {
      const members = world.agents.slice(from, from + MEMBERS);
      const [first] = members as [Agent];
      const body = { name: 'Called', ...deadlines, turnSeconds: TURN_MS / 1_000 };
      const { chamberId } = await world.call('POST', '/chambers', first.by, body);
      for (const { by } of members) await world.call('POST', `/chambers/${chamberId}/join`, by, {});
    }
    expect(Date.now()).toBeLessThan(lobbyEnd);

    // Faults occur until 45 s before the end of the commitments, by which time receivers recover.
    const calmAt = lobbyEnd + DEBATE_MS + COMMIT_MS - HEALTHY_MS - 15_000;
    const failing = (async () => {
      while (Date.now() < calmAt) {
        const agent = world.agents[world.random.below(world.agents.length)] as Agent;
        agent.failsUntil = Math.min(calmAt, Date.now() + 2_000 + world.random.below(20_000));
        await sleep(20_000 / AGENTS);
      }
    })();
    let disturbances = 0;
    while (Date.now() < calmAt) {
      await sleep(4_000);
      const node = cluster.nodes[disturbances % 3] as ServiceNode;
      if (disturbances++ % 2 === 0) {
        await node.kill();
        await node.start();
      } else {
        node.signal('SIGSTOP');
        await sleep(6_000);
        node.signal('SIGCONT');
      }
    }
    await failing;
    await sleep(Math.max(0, (ends[3] ?? 0) - Date.now() + LATE_MS));
    expect(disturbances).toBeGreaterThan(3);
    expect(cluster.problems).toEqual([]);

    for (const { by, got } of world.agents) {
      const idOf = ({ delivery }: (typeof got)[number]) => String(delivery.headers['webhook-id']);
      const commits = got.filter(({ delivery }) => delivery.body.due.must === 'commit');
      // Every receiver is healthy for the last 30 s of the commitments, which no member has made.
      expect([by.did, commits.filter(({ isAccepted }) => isAccepted).length > 0]).toEqual([by.did, true]);
      expect(new Set(commits.map(idOf)).size).toBe(1);
      for (const { at, delivery } of got) {
        const { due, did } = delivery.body;
        expect(did).toBe(by.did);
        const end = Math.min(...[due.turnEndsAt, due.phaseEndsAt].filter(Boolean).map((text) => Date.parse(text)));
        expect(at).toBeLessThan(end + LATE_MS);
      }
      // Each turn has one id, which its end identifies.
      const turns = got.filter(({ delivery }) => delivery.body.due.must === 'pass');
      const ids = new Set(turns.map(idOf));
      expect(new Set(turns.map(({ delivery }) => delivery.body.due.turnEndsAt)).size).toBe(ids.size);
    }
    const accepted = world.agents.flatMap(({ got }) => got.filter(({ isAccepted }) => isAccepted));
    process.stdout.write(
      `${AGENTS} agents, ${disturbances} kills and freezes, ${accepted.length} deliveries accepted\n`,
    );
  } finally {
    await cluster.stop();
  }
});

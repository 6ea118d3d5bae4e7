// The auditor never reports an honest log as broken: random chambers at two nodes whose clocks differ by up to a second, with
// signatures that expire within seconds, retries at the other node, changed and retired accounts, and restarts with other clocks;
// audited by URL and by file. HONEST_NODES_CHAMBERS=1000 plays more chambers, another HONEST_SEED different ones.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { phaseAt } from '../../projections/phase.ts';
import { turnHolderAt } from '../../projections/turn.ts';
import { type AuditArguments, auditMain } from '../../src/audit/main.ts';
import type { Service } from '../../src/service/start.ts';
import { PHASES, type Phase } from '../../src/vocabulary/values.ts';
import { allocationOf } from '../kit/chambers.ts';
import { passing } from '../kit/clock.ts';
import { openService } from '../kit/open-service.ts';
import { temporaryPostgres } from '../kit/postgres.ts';
import { Random } from '../kit/random.ts';
import { Signer } from '../kit/signer.ts';
import { registrationOf } from '../kit/test-service.ts';

const { HONEST_NODES_CHAMBERS = '20', HONEST_SEED = '1' } = process.env;
const CHAMBERS = Number(HONEST_NODES_CHAMBERS);
const CHAMBERS_AT_ONCE = 20;
const AGENTS = 6;
const PUBLIC_URL = 'http://forum.test';
const APART_MS_MAX = 1_000;
/** An auditor waits up to a minute for checkpoints, by its own clock. */
const BEHIND_MS = 30_000;
const STEPS = 24;
const STEP_MS_MAX = 1_500;
const LIMIT_MS = 120_000 + CHAMBERS * 3_000;
/** The statuses that a random request may get. */
const EXPECTED = [200, 400, 401, 403, 404, 409];

interface Node {
  service: Service;
  aheadMillis: number;
}

class World {
  readonly #random = new Random(Number(HONEST_SEED));
  readonly #settings: Readonly<Record<string, string>>;
  readonly #agents: Signer[] = [];
  readonly nodes: Node[] = [];
  /** Starts behind the machine's clock, and is ahead of it after a hundred chambers. */
  #time = Date.now() - BEHIND_MS;
  readonly outcomes = new Map<number, number>();

  readonly read = (): number => this.#time + APART_MS_MAX;

  constructor(url: string, folder: string) {
    this.#settings = {
      DATABASE_URL: url,
      PUBLIC_URL,
      SERVICE_KEY_FILE: join(folder, 'keys.json'),
      VERIFIER_THREADS: '1',
    };
  }

  async #open(): Promise<Node> {
    const node = { aheadMillis: this.#random.below(APART_MS_MAX) };
    const clock = passing(() => this.#time + node.aheadMillis);
    return Object.assign(node, { service: await openService(this.#settings, { clock }) });
  }

  async start(): Promise<void> {
    for (let count = 0; count < 2; count++) this.nodes.push(await this.#open());
    while (this.#agents.length < AGENTS) await this.#register();
  }

  async stop(): Promise<void> {
    for (const { service } of this.nodes) await service.stop();
  }

  async #restart(): Promise<void> {
    const index = this.#random.below(2);
    await this.nodes[index]?.service.stop();
    this.nodes[index] = await this.#open();
  }

  /** Registers unsigned with an e-mail address, then signed, so that an auditor sees the wallet. */
  async #register(): Promise<void> {
    const by = new Signer(this.#random.bytes(32));
    const { operatorEmail, ...body } = registrationOf(by);
    expect(await this.#send({ path: '/register', body: { ...body, operatorEmail } })).toBe(200);
    expect(await this.#send({ path: '/register', body, by })).toBe(200);
    this.#agents.push(by);
  }

  async play(ids: readonly number[]): Promise<void> {
    for (const id of ids) await this.#create(id);
    for (let step = 0; step < STEPS; step++) {
      await Promise.all(ids.map((id) => this.#act(id)));
      if (this.#random.chance(0.3)) await this.#changeAccount();
      this.#time += this.#random.below(STEP_MS_MAX);
    }
    await this.#restart();
  }

  async #create(id: number): Promise<void> {
    const lengths = Array.from({ length: 5 }, () => this.#random.pick([0, 3_000, 5_000, 8_000]));
    const lasts = (count: number) => lengths.slice(0, count).reduce((sum, length) => sum + length, 4_000);
    const ends = lengths.map((_, index) => new Date(this.#time + lasts(index)).toISOString());
    const names = ['lobby', 'proposal', 'debate', 'allocateCommit', 'allocateReveal'].map((name) => `${name}Deadline`);
    const turns = this.#random.chance(0.7) ? { turnSeconds: this.#random.pick([1, 2, 5]) } : {};
    const rounds = 'turnSeconds' in turns && this.#random.chance(0.5) ? { rounds: { proposal: 1, debate: 2 } } : {};
    const deadlines = Object.fromEntries(names.map((name, index) => [name, ends[index]]));
    const body = { name: `Chamber ${id}`, ...deadlines, ...turns, ...rounds };
    expect(await this.#send({ path: '/chambers', body, by: this.#random.pick(this.#agents) })).toBe(200);
  }

  async #act(id: number): Promise<void> {
    const { forum } = (this.nodes[0] as Node).service;
    const state = (await forum.chamber(id))?.state;
    if (state === undefined) throw new Error(`chamber ${id} not found`);
    const phase = this.#random.chance(0.9) ? phaseAt(state, forum.now()) : this.#random.pick(PHASES);
    const holder = this.#agents.find(({ did }) => did === turnHolderAt(state, forum.now()));
    const by = holder && this.#random.chance(0.8) ? holder : this.#random.pick(this.#agents);
    const [move, body] = this.#moveIn(phase, id, by);
    await this.#send({ path: `/chambers/${id}/${move}`, body, by, isBrief: true });
  }

  #moveIn(phase: Phase, id: number, by: Signer): readonly [move: string, body: object] {
    const { commit, reveal } = allocationOf(id, by, {});
    switch (phase) {
      case 'LOBBY':
        return ['join', {}];
      case 'PROPOSAL':
        return this.#random.pick([
          ['pass', {}],
          ['propose', { name: 'Idea', ticker: `T${this.#random.below(9)}`, description: '' }],
        ] as const);
      case 'DEBATE':
        return this.#random.pick([
          ['pass', {}],
          ['debate', { comment: 'Hm.' }],
        ] as const);
      case 'ALLOCATE_COMMIT':
        return ['allocate/commit', commit];
      default:
        return ['allocate/reveal', reveal];
    }
  }

  async #changeAccount(): Promise<void> {
    const index = this.#random.below(AGENTS);
    const by = this.#agents[index] as Signer;
    if (this.#random.chance(0.1)) {
      const status = await this.#send({ path: '/me/retire', body: {}, by });
      if (status !== 200) return;
      this.#agents.splice(index, 1);
      await this.#register();
    } else {
      const body = { patch: { style: `${this.#random.below(1_000)}` } };
      await this.#send({ method: 'PUT', path: '/personality', body, by, isBrief: true });
    }
  }

  /** Sends a request signed with the agent's clock, which is correct to a second; sometimes repeats it at the other node. */
  async #send({ method = 'POST', path, body, by, isBrief = false }: Sent): Promise<number> {
    const text = JSON.stringify(body);
    const created = Math.floor(this.#time / 1000) - (isBrief ? this.#random.pick([0, 0, 298, 299, 300]) : 0);
    const brief = Math.floor(this.#time / 1000) + 1 + this.#random.below(2);
    const expires = isBrief && this.#random.chance(0.7) ? { expires: brief } : {};
    const signed = by?.sign({ method, url: PUBLIC_URL + path, body: text, created, ...expires }) ?? {};
    const headers = { 'content-type': 'application/json', ...signed };
    const times = this.#random.chance(0.1) ? 2 : 1;
    const first = this.#random.below(2);
    let status = 0;
    for (let time = 0; time < times; time++) {
      const { url } = (this.nodes[(first + time) % 2] as Node).service;
      const response = await fetch(url + path, { method, headers, body: text });
      await response.arrayBuffer();
      status = response.status;
      expect(EXPECTED).toContain(status);
      this.outcomes.set(status, (this.outcomes.get(status) ?? 0) + 1);
    }
    return status;
  }
}

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly body: object;
  readonly by?: Signer;
  /** Whether the signature is nearly too old or expires early. */
  readonly isBrief?: boolean;
}

/** Returns the exit code of `chambers audit`, and its output unless the code is 0. */
async function audit(target: string, options: Partial<AuditArguments> = {}): Promise<string> {
  const printed: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((text) => void printed.push(text));
  const code = await auditMain({ target, json: false, ...options });
  vi.restoreAllMocks();
  return code === 0 ? '0' : `${code}: ${printed.join('\n')}`;
}

it(
  `honest chambers are sound by URL and by file (HONEST_NODES_CHAMBERS=${CHAMBERS}, HONEST_SEED=${HONEST_SEED})`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'honest-'));
    const world = new World(await temporaryPostgres(), folder);
    await world.start();
    const ids = Array.from({ length: CHAMBERS }, (_, index) => index + 1);
    for (let from = 0; from < CHAMBERS; from += CHAMBERS_AT_ONCE)
      await world.play(ids.slice(from, from + CHAMBERS_AT_ONCE));
    expect(world.outcomes.get(401)).toBeGreaterThan(0);
    const [{ url }] = world.nodes.map(({ service }) => service) as [Service];
    expect(await audit(url, { now: world.read })).toBe('0');
    const broken: string[] = [];
    for (const id of ids) {
      const file = join(folder, 'lines.ndjson');
      writeFileSync(file, await (await fetch(`${url}/chambers/${id}/events?limit=10000`)).text());
      const result = await audit(file, { now: world.read });
      if (result !== '0') broken.push(`chamber ${id}: ${result}`);
    }
    expect(broken).toEqual([]);
    console.log(`${CHAMBERS} chambers, responses by status: ${JSON.stringify([...world.outcomes])}`);
    await world.stop();
  },
  LIMIT_MS,
);

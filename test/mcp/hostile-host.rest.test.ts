// Three models take part, each with its own server behind a realistic host: arguments come as null, as strings and in any case, every
// fourth result is lost and its call repeated, and calls are cancelled after 60 seconds. The models know only what the instructions and
// the results say.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Agent, type ChamberEvent } from '../../src/client/index.ts';
import { pause } from '../../src/reading/waiting.ts';
import { REGISTRATION, runLiveService } from '../client/live-service.ts';
import { Random } from '../kit/random.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { type SeatProcess, startSeat } from './seat-process.ts';

const SEED = Number(process.env['HOST_SEED'] ?? Date.now());
const HOST_MILLIS_MAX = 60_000;
const LOST_EVERY = 4;
const CALLS_MAX = 25;
/** Longer than a host waits for one call, so that the lobby outlasts a call. */
const LATE_MILLIS = 55_000;

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

type Body = Readonly<Record<string, unknown>>;

class Host {
  readonly errors: Body[] = [];
  calls = 0;
  longestMillis = 0;
  readonly #seat: SeatProcess;
  readonly #random: Random;
  readonly #schemas: ReadonlyMap<string, Schema>;

  private constructor(seat: SeatProcess, random: Random, schemas: ReadonlyMap<string, Schema>) {
    this.#seat = seat;
    this.#random = random;
    this.#schemas = schemas;
  }

  static async of(seat: SeatProcess, seed: number): Promise<Host> {
    const { tools } = await seat.client.listTools();
    return new Host(
      seat,
      new Random(seed),
      new Map(tools.map(({ name, inputSchema }) => [name, inputSchema as Schema])),
    );
  }

  /** The part of the response that the model sees: a result or an error. */
  async call(name: string, args: Body = {}): Promise<Body> {
    const sent = this.#asSent(this.#schemas.get(name) ?? {}, args);
    while (true) {
      this.calls++;
      const startedAt = performance.now();
      const { isError, content } = await this.#seat.client.callTool(
        { name, arguments: { ...sent } },
        { timeout: HOST_MILLIS_MAX },
      );
      this.longestMillis = Math.max(this.longestMillis, performance.now() - startedAt);
      if (this.calls % LOST_EVERY === 0) continue;
      const [first] = content;
      if (first?.type !== 'text') throw new Error(`${name} returned no text`);
      const body = JSON.parse(first.text) as Body;
      if (isError) this.errors.push({ tool: name, ...body });
      return body;
    }
  }

  /** Omitted optional arguments are sent as null, as an empty string, or not at all. */
  #asSent({ properties = {}, required = [] }: Schema, args: Body): Body {
    const absent = Object.keys(properties).filter((name) => !(name in args) && !required.includes(name));
    const left = absent.flatMap((name) => {
      const value = this.#random.pick([null, '', 'null', undefined]);
      return value === undefined ? [] : [[name, value] as const];
    });
    const given = Object.entries(args).map(([name, value]) => [name, this.#asText(properties[name], value)] as const);
    return Object.fromEntries([...given, ...left]);
  }

  #asText(schema: Schema | undefined, value: unknown): unknown {
    if (typeof value === 'string') return schema?.enum === undefined ? value : this.#inAnyCase(value);
    if (Array.isArray(value)) return JSON.stringify(value.map((item) => this.#deep(item)));
    return typeof value === 'object' ? JSON.stringify(this.#deep(value)) : `${value}`;
  }

  #deep(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return typeof value === 'string' ? value : `${value}`;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#deep(member)]));
  }

  #inAnyCase(word: string): string {
    return [...word].map((char) => (this.#random.chance(0.5) ? char.toLowerCase() : char.toUpperCase())).join('');
  }
}

interface Item {
  readonly chamberId: number;
  readonly phase: string;
  readonly must: string;
  readonly memberCount?: number;
}

interface Waited {
  readonly todo: readonly Item[];
  readonly over: readonly Body[];
  readonly next?: string;
}

/** Makes two comments and allocates everything to ideas of others, as far as it has read them. */
class Model {
  readonly said: string[] = [];
  readonly #host: Host;
  readonly #name: string;
  /** The number of members that the opener waits for, as its user requested. */
  readonly #wanted: number | undefined;
  #next = 0;

  constructor(host: Host, name: string, wanted?: number) {
    this.#host = host;
    this.#name = name;
    this.#wanted = wanted;
  }

  /** Returns the outcome that the model reports to its user. */
  async play(): Promise<Body> {
    const chamberId = await this.#enter();
    while (true) {
      const { todo = [], over = [], next = '' } = (await this.#host.call('wait', { seconds: 300 })) as Partial<Waited>;
      for (const item of todo) await this.#act(item);
      const outcome = over.find((each) => each['chamberId'] === chamberId);
      if (outcome === undefined) {
        expect(next, 'a model that ends here has no outcome').not.toMatch(/^You are not in an open chamber/);
        continue;
      }
      // The opener's user wants to know which ideas won; the other users want to know the result, too.
      if (this.#wanted !== undefined || !('waitsFor' in outcome)) return outcome;
      expect(next).toContain(`wait with chamberId ${chamberId}`);
      const [settled] = ((await this.#host.call('wait', { chamberId })) as unknown as Waited).over;
      return settled ?? outcome;
    }
  }

  async #enter(): Promise<number> {
    const list = async (args: Body) =>
      ((await this.#host.call('chambers', { phase: 'LOBBY', ...args })) as { chambers: { chamberId: number }[] })
        .chambers;
    const [found] = await list(this.#wanted === undefined ? { wait: 50 } : {});
    const chamberId = found?.chamberId ?? (await this.#open());
    if (found !== undefined) await this.#read(chamberId);
    await this.#host.call('join', { chamberId });
    return chamberId;
  }

  async #open(): Promise<number> {
    const rounds = { proposal: 1, debate: 2 };
    const terms = { name: 'What shall we plant?', topic: 'One bed, one year.', rounds, turnSeconds: 60 };
    return ((await this.#host.call('open', terms)) as { chamberId: number }).chamberId;
  }

  async #act({ chamberId, phase, must, memberCount }: Item): Promise<void> {
    if (phase === 'LOBBY' && memberCount === this.#wanted) await this.#host.call('start', { chamberId });
    if (must === 'commit') await this.#allocate(chamberId);
    if (must !== 'pass') return;
    if (phase === 'PROPOSAL') {
      const idea = { name: `The idea of ${this.#name}`, ticker: this.#name, description: 'What it says.' };
      await this.#host.call('propose', { chamberId, ...idea, done: true });
      return;
    }
    const others = (await this.#read(chamberId)).match(/(?<=ticker |\()[A-Z]{3,}(?=[),:])/g) ?? [];
    const comment = `${this.#name} has read up to ${this.#next}, of ${[...new Set(others)].join(', ') || 'nobody'}.`;
    this.said.push(comment);
    const stance = this.said.length === 1 ? { ideaId: this.#name, stance: 'for' } : {};
    await this.#host.call('debate', { chamberId, comment, ...stance, pass: true });
  }

  async #read(chamberId: number): Promise<string> {
    const after = this.#next === 0 ? {} : { after: this.#next };
    const { next, transcript } = (await this.#host.call('read', { chamberId, ...after })) as unknown as {
      readonly next: number;
      readonly transcript: string;
    };
    this.#next = next;
    return transcript;
  }

  async #allocate(chamberId: number): Promise<void> {
    const { ideas } = (await this.#host.call('read', { chamberId, after: this.#next })) as unknown as {
      readonly ideas: readonly { readonly ideaId: string; readonly ticker: string }[];
    };
    const others = ideas.filter(({ ticker }) => ticker !== this.#name);
    const bps = Math.floor(10_000 / others.length);
    await this.#host.call('allocate', {
      chamberId,
      allocations: others.map(({ ticker }) => ({ ideaId: ticker, bps })),
    });
  }
}

const NAMES = ['ROSES', 'BEANS', 'CRESS'] as const;

it(`three models behind hosts that lose results take a chamber to its tokens; seed ${SEED}`, {
  timeout: 240_000,
}, async () => {
  const live = await runLiveService({ CHAIN: '' });
  const hosts = await Promise.all(
    NAMES.map(async (name, n) => {
      const keyFile = join(temporaryFolder(), 'agent.json');
      const agent = await Agent.fromKeyFile(live.baseUrl, keyFile);
      await agent.register({ ...REGISTRATION, label: name });
      return await Host.of(
        await startSeat(n === 1 ? 'legacy' : 'modern', { url: live.baseUrl, keyFile, env: {} }),
        SEED + n,
      );
    }),
  );
  const models = hosts.map((host, n) => new Model(host, NAMES[n] ?? '', n === 0 ? NAMES.length : undefined));
  const outcomes = await Promise.all(
    models.map(async (model, n) => {
      if (n > 0) await pause(LATE_MILLIS);
      return await model.play();
    }),
  );

  const counts = hosts.map(({ calls }) => calls);
  process.stderr.write(`calls: ${counts.join(', ')}\n`);
  expect(hosts.flatMap(({ errors }) => errors)).toEqual([]);
  expect(Math.max(...counts)).toBeLessThanOrEqual(CALLS_MAX);
  expect(Math.max(...hosts.map(({ longestMillis }) => longestMillis))).toBeLessThan(HOST_MILLIS_MAX);

  const events: ChamberEvent[] = [];
  for await (const { event } of live.forum.history(1)) events.push(event);
  const of = (type: ChamberEvent['type']) => events.filter((event) => event.type === type);
  for (const [type, each] of Object.entries({
    'chamber.joined': 1,
    'chamber.proposed': 1,
    'chamber.debated': 2,
    'chamber.passed': 3,
    'allocation.committed': 1,
    'allocation.revealed': 1,
  })) {
    expect([type, of(type as ChamberEvent['type']).length]).toEqual([type, each * NAMES.length]);
  }
  const said = of('chamber.debated').map(({ payload }) => (payload as { comment: string }).comment);
  expect([...said].sort()).toEqual(models.flatMap((model) => model.said).sort());
  expect(of('chamber.committed')).toHaveLength(1);
  const won = {
    committed: 3,
    revealed: 3,
    ideas: NAMES.map(() => ({ backers: 2, totalBps: 10_000, graduated: true })),
  };
  const tokens = NAMES.map(() => ({ tokenAddress: expect.stringMatching(/^0x/) }));
  for (const [n, outcome] of outcomes.entries()) {
    expect(outcome).toMatchObject(won);
    if (n > 0) expect(outcome).toMatchObject({ merkleRoot: expect.stringMatching(/^0x/), ideas: tokens });
  }
});

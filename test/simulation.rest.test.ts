// Random agents make legal and illegal moves on a real log, with clock steps in both directions, retries and restarts, and with a
// real chain for chambers with token rules. After every step, the service's views are compared with a fresh fold of its lines and
// with a root by merkletreejs.
import { beforeAll, describe, expect, it } from 'vitest';
import type { ChamberState } from '../projections/chamber.ts';
import { graduates } from '../projections/graduation.ts';
import { isClosed, phaseAt } from '../projections/phase.ts';
import { deploymentOf } from '../projections/settlement.ts';
import { turnHolderAt } from '../projections/turn.ts';
import { spawnAnvil } from '../src/dev-chain/anvil.ts';
import { type ChamberMoveOperation, chamberMoves, moveOfEvent } from '../src/moves/registry.ts';
import { openRpc } from '../src/relayer/rpc.ts';
import { TokenReader } from '../src/relayer/token-reader.ts';
import type { ChamberEvent, ServiceFact } from '../src/vocabulary/events.ts';
import { type Phase, STANCES, toTimestamp } from '../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, recordCommit } from './kit/chambers.ts';
import { HOUR, TestClock } from './kit/clock.ts';
import { type Contract, deployContract } from './kit/contracts.ts';
import { Random } from './kit/random.ts';
import { Signer } from './kit/signer.ts';
import { temporaryDatabase } from './kit/temporary.ts';
import { type Answer, type Prepared, registrationOf, TestService } from './kit/test-service.ts';
import { verifyChamber, verifyLists } from './kit/verify-chamber.ts';
import { provenRegistration, walletOf } from './kit/wallets.ts';

const STEPS = 300;
const AGENTS = 4;
const CHAMBERS_MAX = 8;
const CHAMBERS_OPEN_MAX = 2;
/** So little memory that most reads are folded from the log. */
const OPTIONS = { settings: { MEMBERS_MAX: '3', IDEAS_MAX: '3', STATE_CACHE_BYTES_MAX: '5000' } };
/** Errors that a client's own actions can cause. */
const STATUSES = [200, 400, 401, 403, 404, 409];

/** The wallet that each agent has proven: two agents share one, and one agent has none. Wallets at these indexes hold the token. */
const WALLETS = [0, 1, 1, null];
const HOLDERS = [0, 1];

let token: Contract;
let reader: TokenReader;

beforeAll(async () => {
  const anvil = await spawnAnvil([]);
  const rpc = openRpc(anvil.rpcUrl);
  token = await deployContract(rpc, 'admission/Erc20');
  for (const index of HOLDERS) await token.send('mint', walletOf(index).address, 5n);
  reader = new TokenReader({ rpcUrl: anvil.rpcUrl, chainId: 31_337 });
  return async () => {
    reader.close();
    rpc.close();
    await anvil.kill();
  };
});

type Operation = ChamberMoveOperation;
const OPERATIONS = Object.keys(chamberMoves) as readonly Operation[];
const FITTING: Readonly<Record<Phase, readonly Operation[]>> = {
  LOBBY: ['join', 'join', 'admit', 'start'],
  PROPOSAL: ['propose', 'propose', 'withdraw', 'pass'],
  DEBATE: ['debate', 'amend', 'amend', 'withdraw', 'pass'],
  ALLOCATE_COMMIT: ['commit'],
  ALLOCATE_REVEAL: ['reveal'],
  COMMITTED: OPERATIONS,
};

class Simulation {
  readonly #random: Random;
  readonly #path = temporaryDatabase();
  readonly #agents: readonly Signer[];
  readonly #states = new Map<number, ChamberState>();
  readonly #lines = new Map<number, readonly string[]>();
  readonly #accepted: { request: Prepared; body: unknown }[] = [];
  #service: TestService;

  constructor(seed: number) {
    this.#random = new Random(seed);
    // One more than the number of agents that will register.
    this.#agents = Array.from({ length: AGENTS + 1 }, () => new Signer(this.#random.bytes(32)));
    this.#service = this.#open();
  }

  async start(): Promise<void> {
    for (const [index, agent] of this.#agents.slice(0, AGENTS).entries()) {
      await this.#service.must('POST', '/register', { body: registrationOf(agent) });
      const wallet = WALLETS[index];
      if (wallet === null || wallet === undefined) continue;
      const body = await provenRegistration(this.#service, agent, walletOf(wallet));
      await this.#service.must('POST', '/register', { by: agent, body });
    }
    await this.#createTokenChamber();
  }

  async step(): Promise<void> {
    const steps = [
      [58, () => this.#move()],
      [15, () => this.#moveClock()],
      [8, () => this.#retry()],
      [10, () => this.#relay()],
      [4, () => this.#createChamber()],
      [5, () => this.#restart()],
    ] as const;
    let dice = this.#random.below(100);
    for (const [weight, step] of steps) {
      dice -= weight;
      if (dice < 0) return step();
    }
  }

  async check(): Promise<void> {
    for (const [chamberId, before] of this.#lines) {
      const { state, lines } = await verifyChamber(this.#service, chamberId);
      expect(lines.slice(0, before.length)).toEqual(before);
      this.#states.set(chamberId, state);
      this.#lines.set(chamberId, lines);
    }
    await verifyLists(this.#service, [...this.#states.values()]);
  }

  /** The kinds of events that occurred. */
  get types(): ReadonlySet<string> {
    const events: ChamberEvent[] = [...this.#lines.values()].flat().map((line) => JSON.parse(line));
    return new Set(events.map(({ type, payload }) => ('token' in payload ? `${type} with a token` : type)));
  }

  async #move(): Promise<void> {
    const chamberId = this.#random.chance(0.02) ? 999 : this.#random.pick([...this.#lines.keys()].slice(-3));
    const state = this.#states.get(chamberId);
    const operation = this.#operation(state);
    const creator = this.#agents.find(({ did }) => did === state?.creatorDid);
    const isCreators = operation === 'start' || operation === 'admit';
    const by = isCreators && creator ? creator : this.#mover(state);
    const body = this.#bodyOf(operation, chamberId, by);
    await this.#send(
      this.#service.prepare('POST', chamberMoves[operation].path.replace(':id', String(chamberId)), { by, body }),
    );
  }

  /** Picks a chamber, usually one whose phase allows the move, so that chambers advance. */
  #operation(state: ChamberState | undefined): Operation {
    if (state === undefined || this.#random.chance(0.2)) return this.#random.pick(OPERATIONS);
    return this.#random.pick(FITTING[phaseAt(state, this.#service.forum.now())]);
  }

  /** Picks an agent, usually the turn holder if there is one. */
  #mover(state: ChamberState | undefined): Signer {
    const holder = state && turnHolderAt(state, this.#service.forum.now());
    const isPolite = this.#random.chance(0.7);
    return (isPolite && this.#agents.find(({ did }) => did === holder)) || this.#random.pick(this.#agents);
  }

  #bodyOf(operation: Operation, chamberId: number, by: Signer): unknown {
    if (this.#random.chance(0.03)) return { unknown: 1 };
    const ideaId = `idea-${1 + this.#random.below(4)}`;
    const hasIdeas = (this.#states.get(chamberId)?.ideas.length ?? 0) > 0;
    const allocation = allocationOf(chamberId, by, hasIdeas ? { 'idea-1': 5_000 } : {});
    switch (operation) {
      case 'join':
      case 'start':
      case 'pass':
        return this.#random.pick([undefined, {}]);
      case 'admit':
        return { did: this.#random.pick(this.#agents).did };
      case 'propose':
        return { name: 'Idea', ticker: this.#random.pick(['ABC', 'abc', 'XYZ', 'Q']), description: 'é' };
      case 'debate':
        return { ideaId: this.#random.pick([ideaId, null]), comment: 'hm', ...this.#debateOptions(chamberId) };
      case 'amend':
        return { ideaId: this.#ideaOf(chamberId, by) ?? ideaId, name: this.#random.pick(['Idea', 'Better', 'Best']) };
      case 'withdraw':
        return { ideaId: this.#ideaOf(chamberId, by) ?? ideaId };
      case 'commit':
        return allocation.commit;
      case 'reveal':
        return this.#random.chance(0.8)
          ? allocation.reveal
          : { ...allocation.reveal, allocations: [{ ideaId, bps: 1 }] };
      default:
        throw new Error(`unknown operation ${operation satisfies never}`);
    }
  }

  /** Picks an idea, usually one of the agent's own if there are any. */
  #ideaOf(chamberId: number, { did }: Signer): string | undefined {
    const own = this.#states.get(chamberId)?.ideas.filter(({ creatorDid }) => creatorDid === did) ?? [];
    return own.length === 0 || this.#random.chance(0.1) ? undefined : this.#random.pick(own).ideaId;
  }

  #debateOptions(chamberId: number) {
    const lines = this.#lines.get(chamberId)?.length ?? 0;
    return this.#random.pick([
      {},
      { refinement: { n: this.#random.below(9) } },
      { stance: this.#random.pick([...STANCES, null, 'maybe']) },
      { stance: this.#random.pick(STANCES), replyTo: 1 + this.#random.below(lines + 1) },
      { replyTo: this.#random.pick([null, 0, lines]) },
    ]);
  }

  async #createChamber(): Promise<void> {
    const now = this.#service.forum.now();
    const open = [...this.#states.values()].filter((state) => !isClosed(state, now));
    if (open.length >= CHAMBERS_OPEN_MAX || this.#lines.size >= CHAMBERS_MAX) return;
    const hours = Array.from({ length: 5 }, () => this.#random.pick([0, 1, 1, 2]));
    const ends = hours.map((_, index) => hours.slice(0, index + 1).reduce((sum, hour) => sum + hour, 0.5));
    const rounds = { proposal: 1 + this.#random.below(3), debate: 1 + this.#random.below(3) };
    const turns = this.#random.pick([
      {},
      { turnSeconds: 600 },
      { turnSeconds: 600, rounds },
      { turnSeconds: 600, rounds, movesPerTurn: 1 },
    ]);
    const dids = this.#agents.filter(() => this.#random.chance(0.6)).map(({ did }) => did);
    const at = this.#random.pick(['join', 'creation']);
    const rules = [
      { dids },
      { dids },
      { provenWallets: true },
      { token: { address: token.address, minBalance: 5, at } },
    ];
    const admission = this.#random.chance(0.4) ? { admission: this.#random.pick(rules) } : {};
    const quorum = this.#random.chance(0.3) ? { minMembers: 1 + this.#random.below(3) } : {};
    const body = { name: 'Random', ...deadlinesFrom(now, ends), ...turns, ...admission, ...quorum };
    const answer = await this.#send(
      this.#service.prepare('POST', '/chambers', { by: this.#random.pick(this.#agents), body }),
    );
    if (answer.status === 200) this.#lines.set(answer.body.chamberId, []);
  }

  /** Creates the chamber with a member, so that each run has one. */
  async #createTokenChamber(): Promise<void> {
    const [by] = this.#agents;
    const admission = { token: { address: token.address, minBalance: 5 } };
    const body = { name: 'Token', ...deadlinesFrom(this.#service.forum.now()), admission };
    const { body: created } = await this.#send(this.#service.prepare('POST', '/chambers', { by, body }));
    this.#lines.set(created.chamberId, []);
    await this.#send(this.#service.prepare('POST', `/chambers/${created.chamberId}/join`, { by }));
  }

  async #send(request: Prepared): Promise<Answer> {
    const answer = await this.#service.send(request);
    expect(STATUSES).toContain(answer.status);
    if (answer.status === 200) this.#accepted.push({ request, body: answer.body });
    return answer;
  }

  /** An accepted request gets its first response at any later time, and writes nothing. */
  async #retry(): Promise<void> {
    if (this.#accepted.length === 0) return;
    const { request, body } = this.#random.pick(this.#accepted);
    const heads = () => Promise.all([...this.#lines.keys()].map((id) => this.#service.log.lastEventId(id)));
    const before = await heads();
    expect(await this.#service.send(request)).toMatchObject({ status: 200, body });
    expect(await heads()).toEqual(before);
  }

  async #moveClock(): Promise<void> {
    this.#service.clock.advance(Math.floor(this.#random.pick([-0.001, 0.01, 0.1, 0.3, 0.5]) * HOUR));
  }

  async #restart(): Promise<void> {
    await this.#service.close();
    this.#service = this.#open(this.#service.clock);
  }

  #open(clock = new TestClock()): TestService {
    const service = new TestService({ path: this.#path, ...OPTIONS, clock });
    service.forum.useChain(reader);
    return service;
  }

  /** Returns the next fact that the relayer would record for a chamber that has ended. */
  async #relay(): Promise<void> {
    const now = this.#service.forum.now();
    const ended = [...this.#states.values()].find((state) => isClosed(state, now) && !isSettled(state));
    if (ended === undefined) return;
    const { chamberId, settlement } = ended;
    const waiting = graduates(ended).find(({ ideaId }) => deploymentOf(settlement, ideaId).outcome === null);
    const txHash = `0x${'77'.repeat(32)}` as const;
    const deployed = { txHash, tokenAddress: `0x${'88'.repeat(20)}`, graduatedAt: toTimestamp(now) };
    if (settlement.committed === null) return recordCommit(this.#service.forum, chamberId);
    if (waiting === undefined) return;
    const fact: ServiceFact = { type: 'idea.deployed', payload: { ideaId: waiting.ideaId, ...deployed } };
    await this.#service.forum.submit({ operation: 'record', chamberId, fact });
  }
}

function isSettled(state: ChamberState): boolean {
  const isDone = (ideaId: string) => deploymentOf(state.settlement, ideaId).outcome !== null;
  return state.settlement.committed !== null && graduates(state).every(({ ideaId }) => isDone(ideaId));
}

/** Two fixed seeds, which together produce every kind of event, and a random one. */
const { SIMULATION_SEED = Date.now() % 1_000_000 } = process.env;
const FIXED_SEEDS = [1, 2];
const FURTHER_SEEDS_MAX = 5;
const KINDS = [
  ...Object.keys(moveOfEvent),
  ...['chamber.committed', 'idea.deployed', 'chamber.created with a token', 'chamber.joined with a token'],
];

async function simulate(seed: number): Promise<ReadonlySet<string>> {
  const simulation = new Simulation(seed);
  await simulation.start();
  for (let step = 0; step < STEPS; step++) {
    await simulation.step();
    await simulation.check();
  }
  return simulation.types;
}

describe(`a service under ${STEPS} random steps`, { timeout: 240_000 }, () => {
  const types = new Set<string>();

  it.each([...FIXED_SEEDS, SIMULATION_SEED])(
    'the service’s views match its lines after each random step (SIMULATION_SEED=%s)',
    async (seed) => {
      for (const type of await simulate(Number(seed))) types.add(type);
    },
  );

  it('the random steps produce every kind of event', async () => {
    // Some kinds are so rare that a few seeds may miss one.
    const isMissing = () => KINDS.some((kind) => !types.has(kind));
    for (let seed = 8; seed < 8 + FURTHER_SEEDS_MAX && isMissing(); seed++)
      for (const type of await simulate(seed)) types.add(type);
    expect([...types]).toEqual(expect.arrayContaining(KINDS));
  });
});

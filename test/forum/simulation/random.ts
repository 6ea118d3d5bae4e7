// Random requests, steps and faults on several nodes with small caches; a seed determines the history.
import type { ChamberState } from '../../../projections/chamber.ts';
import { isClosed, phaseAt } from '../../../projections/phase.ts';
import { turnHolderAt } from '../../../projections/turn.ts';
import { appendLeaf, EMPTY_TREE, rootOf } from '../../../src/crypto/merkle.ts';
import type { Forum } from '../../../src/forum/forum.ts';
import { type ChamberEvent, isMove } from '../../../src/vocabulary/events.ts';
import { fromHex, type JsonValue, SIGNATURE_AGES, toHex } from '../../../src/vocabulary/values.ts';
import { allocationOf } from '../../kit/chambers.ts';
import { START } from '../../kit/clock.ts';
import { Random } from '../../kit/random.ts';
import {
  type Agent,
  agentsNamed,
  creation,
  LIMITS,
  move,
  personality,
  proposal,
  registration,
  retirement,
} from './cast.ts';
import { Checker } from './checker.ts';
import type { AskedCommand, AskedRead, Stream } from './history.ts';
import { MemoryDatabase } from './memory-database.ts';
import { type Folded, StreamFolds } from './stream-history.ts';
import { virtual } from './virtual-timers.ts';
import { type Sent, World } from './world.ts';

const REQUESTS = 150;
const UNANSWERED_MAX = 10;
const STEPS_MAX = 10_000;
const CACHE_BYTES = [5_000, 12_000, 1_000_000] as const;
const MINUTE = 60_000;
const HARSH_SEED = 1_000_000;
const EXPIRES_SECONDS_MAX = 3;
/** In chambers with rounds, steps of the clock are shorter than phases, so that events can end phases. */
const CLOCK_MILLIS_MAX = { paced: 2 * MINUTE, unpaced: 8 * MINUTE } as const;

export interface RandomRun {
  readonly seed: number;
  readonly commands: number;
  readonly events: number;
  readonly faults: number;
  readonly found:
    | { readonly seed: number; readonly steps: readonly string[]; readonly problems: readonly string[] }
    | undefined;
}

export async function simulate(ForumClass: typeof Forum, seed: number): Promise<RandomRun> {
  return new Simulation(ForumClass, seed).run();
}

class Simulation {
  readonly #seed: number;
  readonly #random: Random;
  readonly #agents: readonly Agent[] = agentsNamed(['Ann', 'Bob', 'Cyd']);
  readonly #nodes: number;
  readonly #world: World;
  readonly #folds = new StreamFolds();
  readonly #sent: AskedCommand[] = [];
  readonly #steps: string[] = [];
  readonly #faultChance: number;
  /** Odd seeds have chambers without rounds, as before rounds existed, so that seeds that exposed a bug still reproduce it. */
  readonly #hasPace: boolean;
  /**
   * Every second even seed also has signatures that expire soon or are nearly too old, a database that rejects writes, and a store that
   * fails in unknown ways. These use separate random numbers, so that other seeds yield the same histories as before.
   */
  readonly #harsh: Random | undefined;
  #requests = 0;
  #faults = 0;
  #isEndless = false;

  constructor(ForumClass: typeof Forum, seed: number) {
    this.#seed = seed;
    this.#random = new Random(seed);
    this.#hasPace = seed % 2 === 0;
    this.#harsh = seed % 4 === 2 ? new Random(seed + HARSH_SEED) : undefined;
    this.#nodes = 1 + this.#random.below(4);
    this.#faultChance = this.#random.pick([0, 0.02, 0.1]);
    const guess = this.#random.pick([0, 8]);
    this.#world = new World(new MemoryDatabase(), [], {
      Forum: ForumClass,
      nodes: this.#nodes,
      limits: { ...LIMITS, openChambersPerDidMax: 1 + this.#random.below(2) },
      stateCacheBytesMax: this.#random.pick(CACHE_BYTES),
      clock: START,
      skews: Array.from({ length: this.#nodes }, () => this.#random.below(1_000)),
      guesses: (key) => guess > 0 && key.charCodeAt(key.indexOf('.') - 1) % guess === 0,
      hasTurns: true,
      ...(this.#harsh && { ages: SIGNATURE_AGES.defaults, hasStoreErrors: true }),
    });
  }

  async run(): Promise<RandomRun> {
    for (const [index, agent] of this.#agents.entries()) {
      await this.#world.sendAtOnce({
        id: `past ${index}`,
        node: 0,
        ask: registration(`r${index}`, agent, { wallet: 'a', isHidden: true }),
      });
    }
    while (this.#requests < REQUESTS) await this.#step();
    await this.#finish();
    for (const stream of [...this.#chambers.keys(), ...this.#agents.map(({ did }) => did)]) {
      for (let node = 0; node < this.#nodes; node++) this.#send({ stream }, node);
    }
    await this.#finish();
    const problems = [...new Checker().check(this.#world.history)];
    if (this.#isEndless) problems.push(`the run did not end after ${STEPS_MAX} steps without faults`);
    if (this.#world.unanswered > 0) problems.push(`${this.#world.unanswered} requests have no response`);
    await this.#world.end();
    return {
      seed: this.#seed,
      commands: this.#requests,
      events: this.#world.database.commits.length,
      faults: this.#faults,
      found: problems.length === 0 ? undefined : { seed: this.#seed, steps: this.#steps, problems },
    };
  }

  /** Ends the run without further faults, after all requests have responses. */
  async #finish(): Promise<void> {
    for (let count = 0; count < STEPS_MAX; count++) {
      const steps = this.#world.steps(false);
      if (steps.length === 0) return;
      const step = this.#random.pick(steps);
      this.#steps.push(step.name);
      await this.#world.take(step);
    }
    this.#isEndless = true;
  }

  async #step(): Promise<void> {
    const isIdle = this.#world.unanswered === 0;
    if (isIdle || (this.#world.unanswered < UNANSWERED_MAX && this.#random.chance(0.15))) {
      for (let more = 1 + this.#random.below(3); more > 0; more--)
        this.#send(this.#ask(), this.#random.below(this.#nodes));
    }
    if (this.#random.chance(0.03)) this.#moveClock();
    if (this.#random.chance(0.2)) virtual.millis += this.#random.below(4);
    const isFault = this.#random.chance(this.#faultChance);
    const steps = this.#world.steps(isFault);
    const faults = steps.filter(({ kind }) => kind === 'fault');
    if (steps.length === 0) return;
    const step = this.#random.pick(isFault && faults.length > 0 ? faults : steps);
    if (step.kind === 'fault') this.#faults++;
    this.#steps.push(step.name);
    await this.#world.take(step);
  }

  get #clockMillisMax(): number {
    return this.#hasPace ? CLOCK_MILLIS_MAX.paced : CLOCK_MILLIS_MAX.unpaced;
  }

  #moveClock(): void {
    const millis = this.#random.chance(0.1) ? -this.#random.below(1_000) : this.#random.below(this.#clockMillisMax);
    this.#world.setClock(this.#world.clock + millis);
    this.#steps.push(`clock ${millis}`);
  }

  #send(ask: Sent['ask'], node: number): void {
    const id = `#${++this.#requests}`;
    this.#steps.push(`${id} to ${node}: ${'stream' in ask ? `read ${ask.stream}` : nameOf(ask)}`);
    this.#world.send({ id, node, ask });
    if ('operation' in ask && ask.signature !== null) this.#sent.push(ask);
  }

  #ask(): AskedCommand | AskedRead {
    const dice = this.#random.below(100);
    if (dice < 15) return { stream: this.#random.pick(this.#streams) };
    if (dice < 30 && this.#sent.length > 0) return this.#random.pick(this.#sent.slice(-12));
    return this.#timed(this.#newCommand(dice));
  }

  #newCommand(dice: number): AskedCommand {
    const signature = `s${this.#requests}`;
    const agent = this.#random.pick(this.#agents);
    if (dice < 42) return this.#accountCommand(signature, agent);
    if (dice < 50 || this.#chambers.size === 0) {
      const hours = Array.from({ length: 5 }, () => this.#random.pick([0.1, 0.2, 0.4]));
      const ends = hours.map((_, index) => hours.slice(0, index + 1).reduce((sum, hour) => sum + hour, 0));
      const schedule = { from: this.#world.clock, hours: ends, pace: this.#pace() };
      return { ...creation(signature, agent, schedule), created: this.#seconds };
    }
    return { ...this.#chamberCommand(signature, agent), created: this.#seconds };
  }

  /** Half of the signatures expire within seconds; the others are as old as allowed. */
  #timed(command: AskedCommand): AskedCommand {
    if (this.#harsh === undefined || command.signature === null) return command;
    const { created = 0 } = command;
    if (this.#harsh.chance(0.5)) return { ...command, expires: created + 1 + this.#harsh.below(EXPIRES_SECONDS_MAX) };
    const { maxAgeSeconds } = SIGNATURE_AGES.defaults;
    return { ...command, created: created - this.#harsh.pick([0, maxAgeSeconds - 1, maxAgeSeconds]) };
  }

  /** Returns rounds, and limits on turns and members, alone and combined, as the rules allow. */
  #pace(): Readonly<Record<string, JsonValue>> {
    if (!this.#hasPace) return {};
    const turnSeconds = { turnSeconds: this.#random.pick([20, 60, 300]) };
    const rounds = { rounds: { proposal: 1 + this.#random.below(2), debate: 1 + this.#random.below(2) } };
    return {
      ...this.#random.pick([{}, turnSeconds, { ...turnSeconds, ...rounds }, { ...turnSeconds, ...rounds }, rounds]),
      ...this.#random.pick([{}, { movesPerTurn: 1 + this.#random.below(2) }]),
      ...this.#random.pick([{}, { maxMembers: 2 + this.#random.below(2) }]),
    };
  }

  get #seconds(): number {
    return Math.floor(this.#world.clock / 1000);
  }

  get #streams(): readonly Stream[] {
    return [...this.#chambers.keys(), ...this.#agents.map(({ did }) => did), 99];
  }

  get #chambers(): ReadonlyMap<number, readonly Folded[]> {
    const chambers = new Map<number, readonly Folded[]>();
    for (const [stream, lines] of this.#world.history.lines) {
      // The checker must also judge the lines of a mutant.
      if (typeof stream === 'number')
        chambers.set(
          stream,
          this.#folds.fold(stream, lines, () => {}),
        );
    }
    return chambers;
  }

  #accountCommand(signature: string, agent: Agent): AskedCommand {
    const created = this.#seconds;
    if (this.#random.chance(0.02)) return { ...retirement(signature, agent), created };
    if (this.#random.chance(0.5)) return { ...personality(signature, agent, `${this.#random.below(3)}`), created };
    const binding = { wallet: this.#random.pick(['a', 'b']), isHidden: this.#random.chance(0.7) };
    return { ...registration(this.#random.chance(0.8) ? signature : null, agent, binding), created };
  }

  #chamberCommand(signature: string, agent: Agent): AskedCommand {
    const chambers = [...this.#chambers].slice(-3);
    const [chamberId, lines] = this.#random.pick(chambers);
    const state = lines.at(-1)?.chamber;
    if (!state || this.#random.chance(0.02)) return move('join', signature, agent, 99, {});
    const now = this.#world.clock;
    if (isClosed(state, now) && state.settlement.committed === null && this.#random.chance(0.7))
      return recordOf(chamberId, lines);
    const holder = this.#agents.find(({ did }) => did === turnHolderAt(state, now));
    const by = holder !== undefined && this.#random.chance(0.7) ? holder : agent;
    const [operation, body] = this.#moveIn(state, chamberId, by);
    return move(operation, signature, by, chamberId, body);
  }

  #moveIn(state: ChamberState, chamberId: number, by: Agent): readonly [operation: string, body: JsonValue] {
    const allocation = allocationOf(chamberId, by, state.ideas.length === 0 ? {} : { 'idea-1': 5_000 });
    const pass = ['pass', {}] as const;
    const debate = ['debate', { comment: `${this.#requests}` }] as const;
    switch (phaseAt(state, this.#world.clock)) {
      case 'LOBBY':
        return this.#hasPace && state.members.length > 1 ? ['start', {}] : ['join', {}];
      case 'PROPOSAL':
        return this.#random.pick([pass, ['propose', proposal(this.#random.pick(['A', 'B', 'C']))] as const]);
      case 'DEBATE':
        return this.#random.pick([pass, debate]);
      case 'ALLOCATE_COMMIT':
        return ['commit', allocation.commit];
      default:
        return ['reveal', allocation.reveal];
    }
  }
}

/** Returns the service event that ends a chamber, with the root over its moves. */
function recordOf(chamberId: number, lines: readonly Folded[]): AskedCommand {
  const moves = lines.filter(({ event }) => isMove(event as ChamberEvent));
  const tree = moves.reduce((before, { leaf }) => appendLeaf(before, fromHex(leaf)).tree, EMPTY_TREE);
  const root = { merkleRoot: toHex(rootOf(tree)), eventCount: moves.length };
  const transaction = { txHash: `0x${'22'.repeat(32)}`, blockNumber: 5, committedAt: '2030-01-02T00:00:00.000Z' };
  const body = { type: 'chamber.committed', payload: { ...root, ...transaction } };
  return { operation: 'record', chamberId, did: null, body, signature: null };
}

function nameOf({ operation, chamberId, did, signature }: AskedCommand): string {
  return `${operation} ${chamberId ?? ''} by ${did?.slice(-4)} (${signature})`;
}

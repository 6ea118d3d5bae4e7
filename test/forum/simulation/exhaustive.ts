// Explores every interleaving of a scenario with every single fault, depth first, replaying each path from the start. States with
// the same key behave alike, so each is explored once, but every path to it is judged.
import { hash } from 'node:crypto';
import type { Forum } from '../../../src/forum/forum.ts';
import { START } from '../../kit/clock.ts';
import { LIMITS } from './cast.ts';
import { Checker } from './checker.ts';
import type { HistoryRequest } from './history.ts';
import { MemoryDatabase } from './memory-database.ts';
import { NOW, PAST, type Scenario } from './scenarios.ts';
import { areIndependent, type Step, World, type WorldOptions } from './world.ts';

export interface Found {
  readonly scenario: string;
  readonly steps: readonly string[];
  readonly problems: readonly string[];
}

export interface Summary {
  readonly states: number;
  /** The number of paths from start to end. */
  readonly interleavings: bigint;
  readonly histories: number;
  readonly found: Found | undefined;
}

interface Start {
  readonly database: MemoryDatabase;
  readonly requests: readonly HistoryRequest[];
}

export class Exhaustive {
  readonly #Forum: typeof Forum;
  readonly #checker = new Checker();

  constructor(ForumClass: typeof Forum) {
    this.#Forum = ForumClass;
  }

  async explore(
    scenario: Scenario,
    { faults, sends }: { readonly faults: number; readonly sends: number },
  ): Promise<Summary> {
    const exploration = new Exploration(scenario, {
      checker: this.#checker,
      faults,
      begin: await this.#begin(scenario, sends),
    });
    return exploration.run();
  }

  async #begin(scenario: Scenario, sends: number): Promise<() => Promise<World>> {
    const options = {
      Forum: this.#Forum,
      limits: { ...LIMITS, openChambersPerDidMax: scenario.openChambersPerDidMax ?? LIMITS.openChambersPerDidMax },
      stateCacheBytesMax: 1_000_000,
      clock: NOW,
    };
    const start = await pastOf(options);
    return async () => {
      // The second node's clock is behind.
      const world = new World(start.database.copy(), start.requests, {
        ...options,
        nodes: 2,
        skews: [5, 0],
        isOrdered: true,
      });
      await world.warm(scenario.warm);
      for (const sent of scenario.sends.slice(0, sends)) world.send(sent);
      return world;
    };
  }
}

async function pastOf(options: Omit<WorldOptions, 'nodes'>): Promise<Start> {
  const database = new MemoryDatabase();
  const world = new World(database, [], { ...options, clock: START, nodes: 1 });
  for (const [index, { at, ask }] of PAST.entries()) {
    world.setClock(at);
    await world.sendAtOnce({ id: `past ${index}`, node: 0, ask });
  }
  const { requests } = world.history;
  await world.end();
  return { database, requests };
}

interface Parts {
  readonly checker: Checker;
  /** The maximum number of faults on one path. */
  readonly faults: number;
  readonly begin: () => Promise<World>;
}

class Exploration {
  readonly #scenario: Scenario;
  readonly #parts: Parts;
  readonly #states = new Map<string, State>();
  #histories = 0;
  #found: Found | undefined;

  constructor(scenario: Scenario, parts: Parts) {
    this.#scenario = scenario;
    this.#parts = parts;
  }

  async run(): Promise<Summary> {
    const { paths } = await this.#visit(await this.#parts.begin(), { steps: [], faultsLeft: this.#parts.faults });
    return { states: this.#states.size, interleavings: paths, histories: this.#histories, found: this.#found };
  }

  async #visit(world: World, path: Path): Promise<State> {
    const { steps: taken, faultsLeft } = path;
    const key = hash('sha1', `${faultsLeft} ${world.key}`, 'base64');
    const known = this.#states.get(key);
    const steps = known === undefined ? world.steps(faultsLeft > 0) : [];
    if (steps.length === 0) {
      this.#judge(world, taken);
      await world.end();
      const end = known ?? { paths: 1n, next: new Map() };
      this.#states.set(key, end);
      return end;
    }
    const state: State = { paths: 0n, next: new Map() };
    let current: World | undefined = world;
    for (const step of steps) {
      if (this.#found !== undefined) break;
      let next = inOtherOrder(path, step);
      if (next === undefined) {
        current ??= await this.#replay(taken);
        await take(current, step.name);
        const left = faultsLeft - Number(step.kind === 'fault');
        next = await this.#visit(current, {
          steps: [...taken, step.name],
          faultsLeft: left,
          last: step,
          before: state,
        });
        current = undefined;
      }
      state.next.set(step.name, next);
      state.paths += next.paths;
    }
    if (current !== undefined) await current.end();
    this.#states.set(key, state);
    return state;
  }

  async #replay(steps: readonly string[]): Promise<World> {
    const world = await this.#parts.begin();
    for (const name of steps) await take(world, name);
    return world;
  }

  #judge(world: World, steps: readonly string[]): void {
    this.#histories++;
    const problems = [...this.#parts.checker.check(world.history)];
    if (world.steps(false).length === 0 && world.unanswered > 0)
      problems.push(`${world.unanswered} requests have no response`);
    if (problems.length > 0) this.#found ??= { scenario: this.#scenario.name, steps, problems };
  }
}

interface State {
  /** The number of paths from this state to an end. */
  paths: bigint;
  /** The next states, by step. */
  readonly next: Map<string, State>;
}

interface Path {
  readonly steps: readonly string[];
  readonly faultsLeft: number;
  /** The last step, and the state before it. */
  readonly last?: Step;
  readonly before?: State;
}

/** Returns the state after the step, if the previous step is known to lead to the same state when taken after this one. */
function inOtherOrder({ last, before }: Path, step: Step): State | undefined {
  if (last === undefined || before === undefined || !areIndependent(last, step)) return undefined;
  return before.next.get(step.name)?.next.get(last.name);
}

async function take(world: World, name: string): Promise<void> {
  const step = world.steps(true).find((each) => each.name === name);
  if (step === undefined)
    throw new Error(`the step ${name} is not possible: ${world.steps(true).map((each) => each.name)}`);
  await world.take(step);
}

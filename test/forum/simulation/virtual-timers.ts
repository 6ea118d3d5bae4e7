// The turns, timers and clock of the simulated nodes' event loop, so that nothing waits for real time. Loaded before the forum,
// this module replaces the global functions; modules.ts makes it replace node:timers/promises in src/forum.
interface Timer {
  readonly id: number;
  readonly run: () => void;
}

const realTurn = globalThis.setImmediate;

class VirtualTimers {
  #turns: (() => void)[] = [];
  #timers: Timer[] = [];
  #lastId = 0;
  /** The value of performance.now(). */
  millis = 0;

  addTurn(run: () => void): void {
    this.#turns.push(run);
  }

  addTimer(run: () => void): number {
    this.#timers.push({ id: ++this.#lastId, run });
    return this.#lastId;
  }

  clearTimer(id: unknown): void {
    this.#timers = this.#timers.filter((timer) => timer.id !== id);
  }

  get hasTurns(): boolean {
    return this.#turns.length > 0;
  }

  get hasTimers(): boolean {
    return this.#timers.length > 0;
  }

  /** Runs one turn of the event loop. */
  runTurns(): void {
    const turns = this.#turns;
    this.#turns = [];
    for (const run of turns) run();
  }

  /** Fires all timers that are set now. */
  runTimers(): void {
    const timers = this.#timers;
    this.#timers = [];
    for (const { run } of timers) run();
  }
}

export const virtual = new VirtualTimers();

/** Resolves once all promise reactions have run, without a turn of a simulated node. */
export function settled(): Promise<void> {
  return new Promise((resolve) => realTurn(resolve));
}

/** Replaces the function of node:timers/promises. */
export function setImmediate(): Promise<void> {
  return new Promise((resolve) => virtual.addTurn(resolve));
}

Object.assign(globalThis, {
  setImmediate: (run: () => void) => virtual.addTurn(run),
  setTimeout: (run: () => void) => virtual.addTimer(run),
  clearTimeout: (id: unknown) => virtual.clearTimer(id),
});
performance.now = () => virtual.millis;

/** Replaces the function of node:timers/promises. */
export function setTimeout(_millis: number): Promise<void> {
  return new Promise((resolve) => void virtual.addTimer(resolve));
}

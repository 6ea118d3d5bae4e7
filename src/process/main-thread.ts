// Attributes main-thread time to callers. The payer of a request follows its asynchronous context, and each continuation of a promise
// counts for the payer of its context, so code that awaits needs no extra calls.
import { AsyncLocalStorage } from 'node:async_hooks';
import { promiseHooks } from 'node:v8';

export interface Payer {
  /** Counts milliseconds of the main thread. */
  readonly charge: (millis: number) => void;
}

const OVERHEAD_MAX = 3;
const OVERHEAD_EVERY_MS = 1_000;

export class MainThreadMeter {
  readonly #payers = new AsyncLocalStorage<Payer | undefined>();
  stop: () => void = () => {};
  #current: Payer | undefined;
  #since = 0;
  #isEndDue = false;
  /** Milliseconds per payer in this turn of the event loop. */
  readonly #worked = new Map<Payer, number>();
  #workedMillis = 0;
  #measuredAt = 0;
  #utilization = performance.eventLoopUtilization();
  #overhead = 1;

  /** Observes all promises of the process until `stop` is called. */
  start(): void {
    const stop = promiseHooks.onBefore(() => {
      const payer = this.#payers.getStore();
      if (payer !== this.#current) this.count(payer);
    });
    this.stop = () => stop();
  }

  get payer(): Payer | undefined {
    return this.#payers.getStore();
  }

  /** Charges the payer for the calling context from now on. */
  enter(payer: Payer): void {
    this.#payers.enterWith(payer);
    this.count(payer);
  }

  /** Runs `work` and charges the payer for it and everything that it starts; undefined charges nobody. */
  run<Result>(payer: Payer | undefined, work: () => Result): Result {
    const before = this.#current;
    this.count(payer);
    try {
      return this.#payers.run(payer, work);
    } finally {
      this.count(before);
    }
  }

  /** Charges the payer for the time until the next call or the end of this turn of the event loop, regardless of the context. */
  count(payer: Payer | undefined): void {
    const now = performance.now();
    const current = this.#current;
    if (current !== undefined) this.#worked.set(current, (this.#worked.get(current) ?? 0) + now - this.#since);
    this.#current = payer;
    this.#since = now;
    if (payer === undefined || this.#isEndDue) return;
    this.#isEndDue = true;
    setImmediate(this.#endTurn);
  }

  /** Ends the turn, so that nobody is charged while the thread waits for the next event. */
  readonly #endTurn = (): void => {
    this.#isEndDue = false;
    this.count(undefined);
    for (const millis of this.#worked.values()) this.#workedMillis += millis;
    const overhead = this.#overheadAt(this.#since);
    for (const [payer, millis] of this.#worked) payer.charge(millis * overhead);
    this.#worked.clear();
  };

  /**
   * The ratio of the thread's busy time to the attributed time. Parsing, writing to sockets and garbage collection happen outside of any
   * context, so all payers share their cost.
   */
  #overheadAt(now: number): number {
    if (now - this.#measuredAt < OVERHEAD_EVERY_MS) return this.#overhead;
    const { active } = performance.eventLoopUtilization(this.#utilization);
    this.#overhead = Math.min(OVERHEAD_MAX, Math.max(1, active / this.#workedMillis));
    this.#utilization = performance.eventLoopUtilization();
    this.#measuredAt = now;
    this.#workedMillis = 0;
    return this.#overhead;
  }
}

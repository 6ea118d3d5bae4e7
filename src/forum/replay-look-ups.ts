// Looks up signatures that the log probably has, apart from the appends: a replay takes no stream from the moves of a batch, and no batch
// waits for it. What is not found is decided, and its append looks again.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { StreamDamaged } from '../log/damage.ts';
import type { EventLog } from '../log/log.ts';
import { detach } from '../process/detach.ts';
import type { MainThreadMeter } from '../process/main-thread.ts';

/** Lines are public, so any client can send them again: looking them up takes no more of the process's time than these allow. */
const LOOK_UPS_MAX = 16;
const LOOK_UP_PAUSE_MS = 5;

/** What a signature led to. */
export type FoundLine = string | StreamDamaged;

interface Asked {
  readonly signature: string;
  readonly resolve: (line: FoundLine | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class LookUps {
  readonly #log: EventLog;
  readonly #meter: MainThreadMeter;
  #waiting: Asked[] = [];
  #isRunning = false;

  constructor(log: EventLog, meter: MainThreadMeter) {
    this.#log = log;
    this.#meter = meter;
  }

  /** Looks it up together with those that come meanwhile. */
  find(signature: string): Promise<FoundLine | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<FoundLine | undefined>();
    this.#waiting.push({ signature, resolve, reject });
    // It looks up the signatures of all callers.
    if (!this.#isRunning) this.#meter.run(undefined, () => detach(this.#run()));
    return promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let asked = this.#waiting; asked.length > 0; asked = this.#waiting) {
      await nextTurn();
      this.#waiting = asked.splice(LOOK_UPS_MAX);
      try {
        const found = await this.#log.find(asked.map(({ signature }) => signature));
        for (const { signature, resolve } of asked) resolve(found.get(signature));
      } catch (error) {
        for (const { reject } of asked) reject(error);
      }
      await sleep(LOOK_UP_PAUSE_MS);
    }
    this.#isRunning = false;
  }
}

// Looks up signatures that are probably in the log, separately from appends, so that replays neither conflict with other moves in a batch
// nor delay them. If a signature is not found, its command is decided, and the append looks it up again.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { StreamDamaged } from '../log/damage.ts';
import type { EventLog } from '../log/log.ts';
import { detach } from '../process/detach.ts';
import type { MainThreadMeter } from '../process/main-thread.ts';

/** Lines are public, so anyone can replay them. These constants limit the share of the process's time that look-ups take. */
const LOOK_UPS_MAX = 16;
const LOOK_UP_PAUSE_MS = 5;

export type FoundLine = string | StreamDamaged;

interface PendingLookUp {
  readonly signature: string;
  readonly resolve: (line: FoundLine | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class LookUps {
  readonly #log: EventLog;
  readonly #meter: MainThreadMeter;
  #waiting: PendingLookUp[] = [];
  #isRunning = false;

  constructor(log: EventLog, meter: MainThreadMeter) {
    this.#log = log;
    this.#meter = meter;
  }

  /** Resolves with the line of the signature. Signatures that arrive together are looked up together. */
  find(signature: string): Promise<FoundLine | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<FoundLine | undefined>();
    this.#waiting.push({ signature, resolve, reject });
    // One run looks up signatures of all callers, so no caller is charged.
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

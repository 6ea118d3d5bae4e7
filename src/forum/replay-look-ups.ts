// Looks up signatures that the log probably has, apart from the appends: a replay takes no stream from the moves of a batch, and no batch
// waits for it. What is not found is decided, and its append looks again.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { StreamDamaged } from '../log/damage.ts';
import type { EventLog } from '../log/log.ts';
import type { PendingCommand } from './batch.ts';

/** Lines are public, so any client can send them again: looking them up takes no more of the process's time than these allow. */
const LOOK_UPS_MAX = 16;
const LOOK_UP_PAUSE_MS = 5;

/** Takes back a command with the line that its signature led to; undefined if there is none. */
type OnLookedUp = (pending: PendingCommand, line: string | StreamDamaged | undefined) => void;

export class LookUps {
  readonly #log: Pick<EventLog, 'find'>;
  readonly #onLookedUp: OnLookedUp;
  #waiting: PendingCommand[] = [];
  #isRunning = false;
  /** Commands that have not been taken back. */
  count = 0;

  constructor(log: Pick<EventLog, 'find'>, onLookedUp: OnLookedUp) {
    this.#log = log;
    this.#onLookedUp = onLookedUp;
  }

  /** Together with those that come meanwhile. */
  async add(pending: PendingCommand): Promise<void> {
    this.count++;
    this.#waiting.push(pending);
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (let asked = this.#waiting; asked.length > 0; asked = this.#waiting) {
      await nextTurn();
      this.#waiting = asked.splice(LOOK_UPS_MAX);
      await this.#lookUp(asked);
      await sleep(LOOK_UP_PAUSE_MS);
    }
    this.#isRunning = false;
  }

  async #lookUp(asked: readonly PendingCommand[]): Promise<void> {
    const finding = this.#log.find(asked.map(({ signature }) => signature as string));
    const found = await finding.catch((error) => {
      for (const { reject } of asked) reject(error);
    });
    this.count -= asked.length;
    if (found === undefined) return;
    for (const pending of asked) this.#onLookedUp(pending, found.get(pending.signature as string));
  }
}

// What creations are decided on beside streams: the highest chamber id, and how many chambers of the agent are open.
import { ALL_CHAMBERS } from '../log/log.ts';
import type { Store } from '../log/store.ts';
import type { ChamberLimits } from '../moves/move.ts';
import { TurnsByKey } from './slots.ts';

export class Creations {
  readonly #store: Store;
  readonly #limits: ChamberLimits;
  readonly #creators = new TurnsByKey();
  /** How often other processes were found to have created a chamber. */
  #createdElsewhere = 0;
  /** In the log, as far as this process knows; undefined before the first creation. */
  lastChamberId: number | undefined;

  constructor(store: Store, limits: ChamberLimits) {
    this.#store = store;
    this.#limits = limits;
  }

  /** Resolves when the agent's creations before this one have their responses; the next waits for this one's. */
  takeTurn(did: string, response: Promise<unknown>): Promise<void> {
    return this.#creators.take(did, response);
  }

  /** The agent's open chambers, as of a moment after which no other process was found to have created one. */
  async countOpen(did: string): Promise<number> {
    if (this.lastChamberId === undefined) {
      const last = await this.#store.log.lastEventId(ALL_CHAMBERS);
      // Of two that read it at once the first counts: the other may know of a chamber that was created after agents were counted.
      this.lastChamberId ??= last;
    }
    for (;;) {
      const before = this.#createdElsewhere;
      const open = await this.#store.lists.countOpenChambers(did, this.#limits.openChambersPerDidMax);
      if (before === this.#createdElsewhere) return open;
    }
  }

  /** Another process has created chambers, up to this id. */
  noteMoved(lastChamberId: number): void {
    this.lastChamberId = lastChamberId;
    this.#createdElsewhere++;
  }
}

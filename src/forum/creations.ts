// Data that creations need in addition to streams: the highest chamber id, and the agent's number of open chambers.
import { ALL_CHAMBERS } from '../log/log.ts';
import type { Store } from '../log/store.ts';
import type { ChamberLimits } from '../moves/move.ts';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';
import type { CommitBatch, OpenChambers } from './batch.ts';

export class Creations {
  readonly #store: Store;
  readonly #limits: ChamberLimits;
  /** An agent's creations are decided one at a time: the next begins when the previous one has its response. */
  readonly #limit = new ConcurrencyLimit({ perKeyMax: 1 });
  /** The number of times that a creation by another process was noticed. */
  #createdElsewhere = 0;
  /** The highest chamber id that this process knows; undefined before its first creation. */
  lastChamberId: number | undefined;

  constructor(store: Store, limits: ChamberLimits) {
    this.#store = store;
    this.#limits = limits;
  }

  /** Resolves when the agent's earlier creations have their responses. */
  async begin(did: string, response: Promise<unknown>): Promise<void> {
    await this.#limit.acquire(did)?.turn;
    response.finally(() => this.#limit.release(did)).catch(() => {});
  }

  async countOpen(did: string): Promise<OpenChambers> {
    if (this.lastChamberId === undefined) {
      const last = await this.#store.log.lastEventId(ALL_CHAMBERS);
      // Keeps the first of two concurrent reads: the second may include a chamber that was created after the agent's chambers were
      // counted.
      this.lastChamberId ??= last;
    }
    const createdElsewhere = this.#createdElsewhere;
    const count = await this.#store.lists.countOpenChambers(did, this.#limits.openChambersPerDidMax);
    return { count, createdElsewhere };
  }

  /** Whether the count is still valid: no other process is known to have created a chamber since. */
  isCurrent(open: OpenChambers | undefined, batch: CommitBatch): boolean {
    if (open === undefined) return false;
    batch.lastChamberId ??= this.lastChamberId;
    // The batch may have read later chambers that other processes created.
    for (let next = nextId(batch); batch.states.get(next); next = nextId(batch)) {
      batch.lastChamberId = next;
      this.noteCreatedElsewhere(next);
    }
    return open.createdElsewhere === this.#createdElsewhere;
  }

  /** Another process has created chambers, up to this id. */
  noteCreatedElsewhere(lastChamberId: number): void {
    this.lastChamberId = lastChamberId;
    this.#createdElsewhere++;
  }
}

function nextId({ lastChamberId = 0 }: CommitBatch): number {
  return lastChamberId + 1;
}

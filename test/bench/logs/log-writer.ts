// Appends chambers to a log in staged batches, like the service, but without signatures and with its own clock.
import { type Chamber, stageAccountEvent, stageChamberEvent } from '../../../src/forum/staging.ts';
import type { LogEntry } from '../../../src/log/log.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import type { Store } from '../../../src/log/store.ts';
import type { Millis } from '../../../src/vocabulary/values.ts';
import { type Agent, makeAgent } from '../load/agents.ts';
import { creation, joining, move, registration } from './past.ts';

const EVENTS_PER_APPEND = 2_000;
const MEMBERS = 3;

interface Growing {
  readonly chamberId: number;
  readonly size: number;
}

export class LogWriter {
  readonly #store: Store;
  readonly #chambers = new Map<number, Chamber>();
  readonly #agents: readonly Agent[] = Array.from({ length: MEMBERS }, makeAgent);
  #now: Millis = Date.now();
  #lastChamberId = 0;
  #entries: LogEntry[] = [];

  private constructor(store: Store) {
    this.#store = store;
  }

  static async open(path: string): Promise<LogWriter> {
    const writer = new LogWriter(openSqliteStore(path));
    for (const agent of writer.#agents) {
      const [fact, author] = registration(agent);
      writer.#entries.push(stageAccountEvent(undefined, fact, author, { at: writer.#now }).entry);
    }
    await writer.#commit();
    return writer;
  }

  /** Writes chambers of those sizes, from LOBBY into DEBATE; the chambers' moves are interleaved. */
  async growChambers(sizes: readonly number[]): Promise<void> {
    const debateFrom = this.#now + 1;
    const chambers = sizes.map((size): Growing => ({ chamberId: this.#create(debateFrom), size }));
    await this.#commit();
    const largest = Math.max(...sizes);
    for (let events = 1 + MEMBERS; events < largest; events++) {
      for (const { chamberId, size } of chambers) {
        if (events < size) this.#stage(chamberId, move(this.#agents, chamberId, events - 1 - MEMBERS));
      }
      if (this.#entries.length >= EVENTS_PER_APPEND) await this.#commit();
    }
    await this.#commit();
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  #create(debateFrom: Millis): number {
    const chamberId = ++this.#lastChamberId;
    this.#stage(chamberId, creation(this.#agents[0] as Agent, debateFrom));
    for (const [turnOrder, agent] of this.#agents.entries()) {
      this.#stage(chamberId, joining(agent, chamberId, turnOrder));
    }
    return chamberId;
  }

  #stage(chamberId: number, [fact, author]: ReturnType<typeof move>): void {
    const staged = stageChamberEvent(this.#chambers.get(chamberId), chamberId, fact, { author, at: this.#now });
    this.#chambers.set(chamberId, staged.after);
    this.#entries.push(staged.entry);
  }

  async #commit(): Promise<void> {
    if (this.#entries.length > 0) await this.#store.log.append({ entries: this.#entries });
    this.#now++;
    this.#entries = [];
  }
}

// Appends chambers to a log as the spine does, drafts and all, but for the clock, which is told, and the signatures.
import { Draft } from '../../../src/forum/draft.ts';
import { Streams } from '../../../src/forum/streams.ts';
import type { ForumLog } from '../../../src/log/log.ts';
import { openSqliteLog } from '../../../src/log/sqlite-log.ts';
import type { Millis } from '../../../src/vocabulary/values.ts';
import { type Agent, makeAgent } from '../load/agents.ts';
import { creation, joining, move, registration } from './past.ts';

const EVENTS_PER_APPEND = 2_000;
const MEMBERS = 3;
/** The cache holds all chambers that grow at once. */
const CACHE = { chambersCachedMax: 1_000, accountsCachedMax: 1_000 };

interface Growing {
  readonly chamberId: number;
  readonly size: number;
}

export class LogWriter {
  readonly #log: ForumLog;
  readonly #streams: Streams;
  readonly #agents: readonly Agent[] = Array.from({ length: MEMBERS }, makeAgent);
  #now: Millis = Date.now();
  #draft: Draft;

  private constructor(log: ForumLog) {
    this.#log = log;
    this.#streams = new Streams(log, CACHE);
    this.#draft = new Draft(this.#streams, 0, this.#now);
  }

  static async open(path: string): Promise<LogWriter> {
    const writer = new LogWriter(openSqliteLog(path));
    for (const agent of writer.#agents) writer.#draft.appendAccount(...registration(agent));
    await writer.#commit();
    return writer;
  }

  /** Chambers of those sizes, from LOBBY into DEBATE; their moves alternate. */
  async growChambers(sizes: readonly number[]): Promise<void> {
    const debateFrom = this.#now + 1;
    const chambers = sizes.map((size): Growing => ({ chamberId: this.#found(debateFrom), size }));
    await this.#commit();
    const largest = Math.max(...sizes);
    for (let events = 1 + MEMBERS; events < largest; events++) {
      for (const { chamberId, size } of chambers) {
        if (events < size) this.#move(chamberId, events - 1 - MEMBERS);
      }
      if (this.#draft.entries.length >= EVENTS_PER_APPEND) await this.#commit();
    }
    await this.#commit();
  }

  async close(): Promise<void> {
    await this.#log.close();
  }

  #found(debateFrom: Millis): number {
    const chamberId = this.#draft.lastChamberId + 1;
    this.#draft.appendMove(...creation(this.#agents[0] as Agent, debateFrom));
    for (const [turnOrder, agent] of this.#agents.entries()) {
      this.#draft.appendMove(...joining(agent, chamberId, turnOrder), chamberId);
    }
    return chamberId;
  }

  #move(chamberId: number, index: number): void {
    this.#draft.appendMove(...move(this.#agents, chamberId, index), chamberId);
  }

  async #commit(): Promise<void> {
    if (this.#draft.entries.length > 0) await this.#log.append(this.#draft.entries);
    this.#draft.publish();
    this.#now++;
    this.#draft = new Draft(this.#streams, this.#draft.lastChamberId, this.#now);
  }
}

// A pool of connections, and work on them that is repeated when a connection is lost.
//
// - A lost connection leaves the outcome of its work unknown: for up to 5 seconds the work runs again on other connections, with isRepeated.
// - Work that the server still does when its caller's time is over, as a commit that waits for a synchronous standby, is not repeated. Its
//   connection stays open until the server is done: a closed connection would leave its session waiting at the server, where sessions would
//   pile up and hold locks until the standby is back.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { detach } from '../../process/detach.ts';
import type { Sql } from '../sql/sql.ts';
import { failureOf, isSilence, OtherLog, StillAtWork, toLogError } from './database-errors.ts';
import { describeDatabase } from './database-url.ts';
import { POSTGRES } from './dialect.ts';
import { type ConnectionOptions, Hosts } from './hosts.ts';
import { prepared, requireOwnSession } from './session.ts';

/** Counted from the first lost connection: long enough for a promotion, and less than a stop allows. */
export const PATIENCE_MS = 5_000;
const RETRY_PAUSE_MS = 100;
const HELD_INTERVAL_MS = 5_000;

export interface PoolOptions extends ConnectionOptions {
  /** Called when another log is found on a connection. */
  readonly onOtherLog?: () => void;
}

/** Statements and work on connections, or on one of them. */
export interface Runner extends Sql {
  /** `isRepeated`: an earlier attempt may have been committed. */
  run<Result>(work: (client: pg.Client, isRepeated: boolean) => Promise<Result>): Promise<Result>;
}

/** A lost connection fails the work. */
export function runnerOn(client: pg.Client): Runner {
  return {
    dialect: POSTGRES,
    query: async (text, values) => (await client.query(prepared(text, values))).rows,
    run: (work) => work(client, false),
  };
}

interface PromiseCallbacks {
  readonly resolve: (client: pg.Client) => void;
  readonly reject: (error: unknown) => void;
}

export class Connections implements Runner {
  readonly dialect = POSTGRES;
  readonly #max: number;
  readonly #onOtherLog: () => void;
  readonly #hosts: Hosts;
  /** Usable connections, those in use too. */
  readonly #pool = new Set<pg.Client>();
  readonly #idle: pg.Client[] = [];
  /** The server is still at work on these. */
  readonly #held = new Set<pg.Client>();
  readonly #waiting: PromiseCallbacks[] = [];
  #opening = 0;
  #problem: unknown;
  #isClosed = false;

  constructor(databaseUrl: string, max: number, options: PoolOptions = {}) {
    this.#max = max;
    this.#onOtherLog = options.onOtherLog ?? (() => {});
    this.#hosts = new Hosts(databaseUrl, options, (client) => this.#forget(client));
  }

  /** Throws FORUM_ERR_UNAVAILABLE if no server has responded in time, or the server can't do the work now. */
  async run<Result>(work: (client: pg.Client, isRepeated: boolean) => Promise<Result>): Promise<Result> {
    let giveUpAt: number | undefined;
    for (;;) {
      try {
        const result = await this.#use((client) => work(client, giveUpAt !== undefined));
        this.#problem = undefined;
        return result;
      } catch (error) {
        const failure = failureOf(error);
        if (failure !== undefined) this.#problem = error;
        if (failure !== 'lost') throw toLogError(error);
        giveUpAt ??= performance.now() + PATIENCE_MS;
        if (this.#isClosed || performance.now() > giveUpAt) throw toLogError(error);
        await sleep(RETRY_PAUSE_MS);
      }
    }
  }

  readonly query: Sql['query'] = async (text, values) => {
    const { rows } = await this.run((client) => client.query(prepared(text, values)));
    return rows;
  };

  /** A connection of the caller's own. */
  connect(isTrial = false): Promise<pg.Client> {
    return this.#hosts.connect(isTrial);
  }

  /** The error of the latest work that met one; undefined once work succeeded. */
  get problem(): unknown {
    return this.#problem;
  }

  get inUse(): number {
    return this.#pool.size - this.#idle.length;
  }

  get awaited(): number {
    return this.#waiting.length;
  }

  async #use<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> {
    const client = this.#idle.pop() ?? (await this.#nextFree());
    try {
      const result = await work(client);
      this.#release(client);
      return result;
    } catch (thrown) {
      const isSilent = isSilence(thrown);
      if (isSilent && (await this.#hold(client)))
        throw new StillAtWork('the database is still at work', { cause: thrown });
      const error = this.#hosts.meaningOf(thrown, client);
      if (failureOf(error) === 'lost') this.#hosts.drop(client);
      if (isSilent) this.#dropIdle();
      if (error instanceof OtherLog) this.#onOtherLog();
      this.#release(client);
      throw error;
    }
  }

  /** The next connection that is released or opened, whichever comes first: opening one takes as long as many queries. */
  #nextFree(): Promise<pg.Client> {
    if (this.#areAllHeld) return Promise.reject(new StillAtWork(ALL_HELD));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      detach(this.#openAnother());
    });
  }

  async #openAnother(): Promise<void> {
    if (this.#opening >= this.#waiting.length || this.#pool.size + this.#opening >= this.#max) return;
    this.#opening++;
    try {
      const client = await this.connect();
      this.#pool.add(client);
      this.#release(client);
    } catch (error) {
      // While there are others, the waiting callers get one of them.
      if (this.#pool.size === 0) this.#rejectWaiting(error);
    } finally {
      this.#opening--;
    }
  }

  #rejectWaiting(error: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  #release(client: pg.Client): void {
    const isUsable = this.#pool.has(client);
    if (!isUsable) this.#hosts.drop(client);
    const next = isUsable ? this.#waiting.shift() : undefined;
    if (next !== undefined) next.resolve(client);
    else if (isUsable) this.#idle.push(client);
    else detach(this.#openAnother());
  }

  /** Keeps the connection until the server has done its work; returns false if it does none. */
  async #hold(client: pg.Client): Promise<boolean> {
    this.#held.add(client);
    client.once('drain', () => {
      if (this.#held.delete(client)) this.#release(client);
    });
    if (this.#areAllHeld) this.#rejectWaiting(new StillAtWork(ALL_HELD));
    // It may be done before the server is asked.
    if (!(await this.#hosts.isAtWork(client))) return !this.#held.delete(client);
    detach(this.#watchHeld(client));
    return true;
  }

  get #areAllHeld(): boolean {
    return this.#held.size >= this.#max;
  }

  /** The server may be lost later, in silence. */
  async #watchHeld(client: pg.Client): Promise<void> {
    do await sleep(HELD_INTERVAL_MS, undefined, { ref: false });
    while (this.#held.has(client) && (await this.#hosts.isAtWork(client)));
    if (!this.#held.has(client)) return;
    this.#hosts.drop(client);
    this.#dropIdle();
    detach(this.#openAnother());
  }

  /** If one connection is silent, all are, and work would wait as long for each. */
  #dropIdle(): void {
    for (const client of [...this.#idle]) this.#hosts.drop(client);
  }

  /** No connection is used again before its database has been checked. */
  recheck(): void {
    this.#dropIdle();
    this.#pool.clear();
  }

  #forget(client: pg.Client): void {
    this.#held.delete(client);
    this.#pool.delete(client);
    const index = this.#idle.indexOf(client);
    if (index >= 0) this.#idle.splice(index, 1);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#hosts.close();
  }
}

/** Runs `use` on a first connection, which is then closed. Throws as below. */
export async function onFirstConnection<Result>(
  url: string,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const connections = new Connections(url, 1);
  const result = await connectFirst(connections, url, use);
  await connections.close();
  return result;
}

/**
 * Uses a first connection, which stays open. Throws an Error of one line, without the password, if there is none or its first use fails; then
 * all connections are closed.
 */
export async function connectFirst<Result>(
  connections: Connections,
  url: string,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  try {
    await requireOwnSession(() => connections.connect(true));
    return await use(await connections.connect());
  } catch (error) {
    await connections.close();
    const reason = error instanceof Error ? error.message || (error as NodeJS.ErrnoException).code : String(error);
    throw new Error(`cannot open the database ${describeDatabase(url)}: ${reason}`, { cause: error });
  }
}

const ALL_HELD = 'the database is still at work on all connections';

// A pool of connections. Work on a connection is repeated when the connection is lost.
//
// - If a connection is lost, the outcome of its work is unknown. For up to 5 seconds the work runs again on other connections, with isRepeated.
// - Work that the server is still executing when its caller's time is up, such as a commit that waits for a synchronous standby, is not
//   repeated. Its connection stays open until the server is done: if it were closed, its session would stay on the server, and such sessions
//   would pile up and hold locks until the standby is back.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { detach } from '../../process/detach.ts';
import type { Sql } from '../sql/sql.ts';
import { failureOf, isResponseTimeout, OtherLog, StillExecuting, toLogError } from './database-errors.ts';
import { describeDatabase } from './database-url.ts';
import { POSTGRES } from './dialect.ts';
import { type ConnectionOptions, Hosts } from './hosts.ts';
import { prepared, requireOwnSession } from './session.ts';

/** How long work is repeated after the first lost connection: long enough for a promotion, and less than a stop allows. */
export const RETRY_WINDOW_MS = 5_000;
const RETRY_PAUSE_MS = 100;
const BUSY_CHECK_INTERVAL_MS = 5_000;

export interface PoolOptions extends ConnectionOptions {
  /** Called when a connection leads to a different log. */
  readonly onOtherLog?: () => void;
}

/** Runs statements and work on a pool of connections, or on one connection. */
export interface Runner extends Sql {
  /** `isRepeated`: an earlier attempt may have been committed. */
  run<Result>(work: (client: pg.Client, isRepeated: boolean) => Promise<Result>): Promise<Result>;
}

/** Does not repeat work when the connection is lost. */
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
  /** Usable connections, including those in use. */
  readonly #pool = new Set<pg.Client>();
  readonly #idle: pg.Client[] = [];
  /** Connections on which the server is still executing work. */
  readonly #busy = new Set<pg.Client>();
  readonly #waiting: PromiseCallbacks[] = [];
  #opening = 0;
  #problem: unknown;
  #isClosed = false;

  constructor(databaseUrl: string, max: number, options: PoolOptions = {}) {
    this.#max = max;
    this.#onOtherLog = options.onOtherLog ?? (() => {});
    this.#hosts = new Hosts(databaseUrl, options, (client) => this.#forget(client));
  }

  /** Throws FORUM_ERR_UNAVAILABLE if no server responded in time, or the server can't do the work now. */
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
        giveUpAt ??= performance.now() + RETRY_WINDOW_MS;
        if (this.#isClosed || performance.now() > giveUpAt) throw toLogError(error);
        await sleep(RETRY_PAUSE_MS);
      }
    }
  }

  readonly query: Sql['query'] = async (text, values) => {
    const { rows } = await this.run((client) => client.query(prepared(text, values)));
    return rows;
  };

  /** Opens a connection outside the pool. A trial leaves the session's settings unchanged. */
  connect(isTrial = false): Promise<pg.Client> {
    return this.#hosts.connect(isTrial);
  }

  /** The latest error of a lost or failing database; undefined once work has succeeded. */
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
      const hasTimedOut = isResponseTimeout(thrown);
      if (hasTimedOut && (await this.#keepUntilDone(client)))
        throw new StillExecuting('the database is still executing the statement', { cause: thrown });
      const error = this.#hosts.classify(thrown, client);
      if (failureOf(error) === 'lost') this.#hosts.drop(client);
      if (hasTimedOut) this.#dropIdle();
      if (error instanceof OtherLog) this.#onOtherLog();
      this.#release(client);
      throw error;
    }
  }

  /** Resolves with the next connection that is released or opened, because opening one takes as long as many queries. */
  #nextFree(): Promise<pg.Client> {
    if (this.#areAllBusy) return Promise.reject(new StillExecuting(ALL_BUSY));
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
      // If the pool has other connections, the waiting callers get one of those.
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

  /** Keeps the connection until the server has done its work. Returns false if the server is not executing any. */
  async #keepUntilDone(client: pg.Client): Promise<boolean> {
    this.#busy.add(client);
    client.once('drain', () => {
      if (this.#busy.delete(client)) this.#release(client);
    });
    if (this.#areAllBusy) this.#rejectWaiting(new StillExecuting(ALL_BUSY));
    // The work may be done before the server is asked.
    if (!(await this.#hosts.isExecuting(client))) return !this.#busy.delete(client);
    detach(this.#watchBusy(client));
    return true;
  }

  get #areAllBusy(): boolean {
    return this.#busy.size >= this.#max;
  }

  /** Drops the connection if the server is lost later without closing it. */
  async #watchBusy(client: pg.Client): Promise<void> {
    do await sleep(BUSY_CHECK_INTERVAL_MS, undefined, { ref: false });
    while (this.#busy.has(client) && (await this.#hosts.isExecuting(client)));
    if (!this.#busy.has(client)) return;
    this.#hosts.drop(client);
    this.#dropIdle();
    detach(this.#openAnother());
  }

  /** Drops idle connections: if the server does not respond on one, work would time out on each of the others too. */
  #dropIdle(): void {
    for (const client of [...this.#idle]) this.#hosts.drop(client);
  }

  /** Drops all connections, so that the database is checked again before it is used. */
  recheck(): void {
    this.#dropIdle();
    this.#pool.clear();
  }

  #forget(client: pg.Client): void {
    this.#busy.delete(client);
    this.#pool.delete(client);
    const index = this.#idle.indexOf(client);
    if (index >= 0) this.#idle.splice(index, 1);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#hosts.close();
  }
}

/** Runs `use` on a first connection, which is then closed. Throws the same errors as connectFirst. */
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
 * Runs `use` on a first connection, which stays open. If it can't be opened or `use` fails, closes all connections and throws a single-line
 * Error without the password.
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

const ALL_BUSY = 'the database is still executing statements on all connections';

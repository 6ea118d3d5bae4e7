// Connections to the writable server among the hosts of DATABASE_URL. A lost connection is replaced by one to the host that
// takes writes then, so that the process outlives a restart of PostgreSQL and a standby's promotion.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { detach } from '../../process/detach.ts';
import { forSamePayer } from '../../process/main-thread.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import type { Sql } from '../sql/sql.ts';
import { CannotConnect, ConnectionLost, failureOf, isSilent, logUnavailable, toLogError } from './database-errors.ts';
import { describeDatabase, hostUrls } from './database-url.ts';
import { POSTGRES } from './dialect.ts';
import { newClient, prepared } from './driver.ts';
import { requireOwnSession } from './pooler.ts';
import { openSession, type PlanCacheMode } from './session.ts';
import { Unresolved, UnresolvedWork } from './unresolved.ts';
import { OtherLog, UnusableDatabase } from './unusable-database.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** A server that is silent for so long is taken for lost. */
const SILENCE_MS_MAX = 10_000;
/** The time counts from the first lost connection: a promotion takes as long, and a stop has more. */
export const PATIENCE_MS = 5_000;
const RETRY_PAUSE_MS = 100;

export interface ConnectionOptions {
  /** A query may take any time if it is 0. */
  readonly silenceMillis?: number;
  /** Whether prepared statements may be planned again for their parameters. */
  readonly planCacheMode?: PlanCacheMode;
  /** Called with each connection before it is used; throws if it may not be used. */
  readonly check?: (client: pg.Client) => Promise<void>;
  /** Called when a database can't be used, and with undefined when one can. */
  readonly onChecked?: (problem: UnusableDatabase | undefined) => void;
  /** Called when another log is found on a connection. */
  readonly onOtherLog?: () => void;
}

/** Statements and work on connections, or on one of them. */
export interface Runner extends Sql {
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
  readonly #urls: readonly string[];
  readonly #max: number;
  readonly #options: Required<ConnectionOptions>;
  /** With the host of each. Connections that callers have taken are in it too. */
  readonly #all = new Map<pg.Client, string>();
  readonly #pool = new Set<pg.Client>();
  readonly #outdated = new WeakSet<pg.Client>();
  readonly #idle: pg.Client[] = [];
  readonly #waiting: PromiseCallbacks[] = [];
  readonly #unresolved = new UnresolvedWork({
    onResolved: (client) => this.#release(client),
    onLost: (client) => this.#dropSilent(client),
  });
  #opening = 0;
  #host = 0;
  #problem: unknown;
  #isClosed = false;

  constructor(databaseUrl: string, max: number, options: ConnectionOptions = {}) {
    this.#urls = hostUrls(databaseUrl);
    this.#max = max;
    this.#options = {
      silenceMillis: SILENCE_MS_MAX,
      planCacheMode: 'auto',
      check: NO_CHECK,
      onChecked: () => {},
      onOtherLog: () => {},
      ...options,
    };
  }

  /**
   * Runs `work` on a connection, again on another one if the connection is lost, until a server has responded or the patience
   * is at its end: then it throws FORUM_ERR_UNAVAILABLE, as it does when the server can't do the work now.
   */
  async run<Result>(work: (client: pg.Client, isRepeated: boolean) => Promise<Result>): Promise<Result> {
    let giveUpAt: number | undefined;
    for (;;) {
      try {
        const result = await this.#use((client) => work(client, giveUpAt !== undefined));
        this.#problem = undefined;
        return result;
      } catch (error) {
        if (error instanceof Unresolved) throw logUnavailable(error);
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
    const { rows } = await forSamePayer(this.run((client) => client.query(prepared(text, values))));
    return rows;
  };

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
    let isHeld = false;
    try {
      return await work(client);
    } catch (thrown) {
      isHeld = isSilent(thrown) && (await this.#hold(client));
      if (isHeld) throw new Unresolved('the database is still at work', { cause: thrown });
      const error = this.#meaningOf(thrown, client);
      if (isSilent(thrown)) this.#dropSilent(client);
      else if (failureOf(error) === 'lost') this.#drop(client);
      if (error instanceof OtherLog) this.#options.onOtherLog();
      throw error;
    } finally {
      if (!isHeld) this.#release(client);
    }
  }

  /** The driver's errors are known by the end of their connection: they have no class, and many have no code. */
  #meaningOf(error: unknown, client: pg.Client): unknown {
    const isKnown = failureOf(error) !== undefined || error instanceof ForumError;
    return !isKnown && (isSilent(error) || !this.#all.has(client)) ? new ConnectionLost(error) : error;
  }

  /** Returns whether the server is still at work: then the connection is released when it is done. */
  #hold(client: pg.Client): Promise<boolean> {
    const url = this.#all.get(client);
    if (url === undefined) return Promise.resolve(false);
    const holding = this.#unresolved.hold({ client, url });
    if (this.#isHeldUp) for (const { reject } of this.#waiting.splice(0)) reject(new Unresolved(ALL_HELD));
    return holding;
  }

  get #isHeldUp(): boolean {
    return this.#unresolved.size >= this.#max;
  }

  /** What silenced one has silenced all, and each would be waited for as long again. */
  #dropSilent(client: pg.Client): void {
    this.#drop(client);
    this.#dropIdle();
  }

  /** The next one that is released or opened, whichever comes first: to open one takes as long as many queries. */
  #nextFree(): Promise<pg.Client> {
    if (this.#isHeldUp) return Promise.reject(new Unresolved(ALL_HELD));
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
      // While there are others, those who wait get one of them.
      if (this.#pool.size === 0) for (const { reject } of this.#waiting.splice(0)) reject(error);
    } finally {
      this.#opening--;
    }
  }

  /** No connection is used again before its database was checked. */
  recheck(): void {
    for (const client of this.#pool) this.#outdated.add(client);
    this.#dropIdle();
  }

  #dropIdle(): void {
    for (const idle of [...this.#idle]) this.#drop(idle);
  }

  #release(client: pg.Client): void {
    if (this.#outdated.has(client)) this.#drop(client);
    const isOpen = this.#all.has(client);
    const next = isOpen ? this.#waiting.shift() : undefined;
    if (next !== undefined) next.resolve(client);
    else if (isOpen) this.#idle.push(client);
    else detach(this.#openAnother());
  }

  /**
   * A connection of the caller's own, to a server that takes writes: tries each host once, the last good one first. A trial leaves the
   * session as it was.
   */
  async connect(isTrial = false): Promise<pg.Client> {
    let problem: unknown;
    for (const _ of this.#urls) {
      try {
        return await this.#open(this.#urls[this.#host] as string, isTrial);
      } catch (error) {
        // That a host holds another log says more than that the next one is gone.
        if (!(problem instanceof UnusableDatabase)) problem = error;
        this.#host = (this.#host + 1) % this.#urls.length;
      }
    }
    throw problem;
  }

  async #open(connectionString: string, isTrial: boolean): Promise<pg.Client> {
    const limits = { connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: this.#options.silenceMillis };
    const client = newClient(connectionString, limits);
    this.#all.set(client, connectionString);
    // The loss of an idle connection would end the process if nothing listened.
    client.on('error', () => this.#drop(client));
    client.on('end', () => this.#drop(client));
    try {
      await client.connect();
      await openSession(client, this.#options.planCacheMode, isTrial);
      if (!isTrial) await this.#check(client);
      return client;
    } catch (error) {
      this.#drop(client);
      throw error instanceof CannotConnect || error instanceof UnusableDatabase ? error : new CannotConnect(error);
    }
  }

  async #check(client: pg.Client): Promise<void> {
    const { check, onChecked } = this.#options;
    try {
      await check(client);
      onChecked(undefined);
    } catch (thrown) {
      const error = this.#meaningOf(thrown, client);
      if (failureOf(error) === 'lost' && !(error instanceof UnusableDatabase)) throw error;
      const problem =
        error instanceof UnusableDatabase ? error : new UnusableDatabase((error as Error).message, { cause: error });
      onChecked(problem);
      throw problem;
    }
  }

  #drop(client: pg.Client): void {
    this.#unresolved.forget(client);
    if (!this.#all.delete(client)) return;
    this.#pool.delete(client);
    const index = this.#idle.indexOf(client);
    if (index >= 0) this.#idle.splice(index, 1);
    client.end().catch(() => {});
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const ends = [...this.#all.keys()].map((client) => client.end().catch(() => {}));
    await Promise.race([Promise.all(ends), sleep(RETRY_PAUSE_MS * 10, undefined, { ref: false })]);
  }
}

/** Uses a first connection, which stays open. Throws an Error of one line, without the password, if there is no connection or its first use fails; then all are closed. */
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

const NO_CHECK = async () => {};

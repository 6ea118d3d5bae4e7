// The hosts of DATABASE_URL. Opens connections to the host that currently accepts writes, so that the process survives a restart of
// PostgreSQL and the promotion of a standby.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { ForumError } from '../../vocabulary/errors.ts';
import { CannotConnect, ConnectionLost, failureOf, isResponseTimeout, UnusableDatabase } from './database-errors.ts';
import { hostUrls } from './database-url.ts';
import { newClient, openSession, type PlanCacheMode } from './session.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const PROBE_MS_MAX = 5_000;
const CLOSE_MS_MAX = 1_000;
/** A server that does not respond for this long counts as lost. */
const RESPONSE_TIMEOUT_MS = 10_000;

export interface ConnectionOptions {
  /** 0 disables the timeout. */
  readonly responseTimeoutMillis?: number;
  readonly planCacheMode?: PlanCacheMode;
  /** Called with each connection before it is used. Throws if the connection must not be used. */
  readonly check?: (client: pg.Client) => Promise<void>;
  /** Called with the problem when a database can't be used, and with undefined when it can. */
  readonly onChecked?: (problem: UnusableDatabase | undefined) => void;
}

interface OpenSession {
  readonly url: string;
  /** The process id of the session's backend; undefined until the session is open. */
  backend: number | undefined;
}

export class Hosts {
  readonly #urls: readonly string[];
  readonly #options: ConnectionOptions;
  readonly #onEnd: (client: pg.Client) => void;
  readonly #open = new Map<pg.Client, OpenSession>();
  #lastGood = 0;
  #isClosed = false;

  /** `onEnd` is called once for each connection that ends or is dropped. */
  constructor(databaseUrl: string, options: ConnectionOptions, onEnd: (client: pg.Client) => void) {
    this.#urls = hostUrls(databaseUrl);
    this.#options = options;
    this.#onEnd = onEnd;
  }

  /** Tries each host once, the last good one first. A trial leaves the session's settings unchanged. */
  async connect(isTrial = false): Promise<pg.Client> {
    let problem: unknown;
    for (const url of [...this.#urls.slice(this.#lastGood), ...this.#urls.slice(0, this.#lastGood)]) {
      if (this.#isClosed) throw new CannotConnect(new Error('the log is closed'));
      try {
        const client = await this.#connectTo(url, isTrial);
        this.#lastGood = this.#urls.indexOf(url);
        return client;
      } catch (error) {
        // A different log on one host is the more useful error, even if the next host is unreachable.
        if (!(problem instanceof UnusableDatabase)) problem = error;
      }
    }
    throw problem;
  }

  async #connectTo(url: string, isTrial: boolean): Promise<pg.Client> {
    const { responseTimeoutMillis = RESPONSE_TIMEOUT_MS, planCacheMode = 'auto' } = this.#options;
    const client = newClient(url, {
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: responseTimeoutMillis,
    });
    const session: OpenSession = { url, backend: undefined };
    this.#open.set(client, session);
    // Without a listener, the loss of an idle connection would end the process.
    client.on('error', () => this.drop(client));
    client.on('end', () => this.drop(client));
    try {
      await client.connect();
      session.backend = await openSession(client, planCacheMode, isTrial);
      if (!isTrial) await this.#check(client);
      return client;
    } catch (error) {
      this.drop(client);
      throw error instanceof CannotConnect || error instanceof UnusableDatabase ? error : new CannotConnect(error);
    }
  }

  async #check(client: pg.Client): Promise<void> {
    const { check = async () => {}, onChecked = () => {} } = this.#options;
    try {
      await check(client);
      onChecked(undefined);
    } catch (thrown) {
      const error = this.classify(thrown, client);
      if (failureOf(error) === 'lost' && !(error instanceof UnusableDatabase)) throw error;
      const problem =
        error instanceof UnusableDatabase ? error : new UnusableDatabase((error as Error).message, { cause: error });
      onChecked(problem);
      throw problem;
    }
  }

  /** Returns ConnectionLost if the connection ended or timed out: the driver's own errors have no class, and many have no code. */
  classify(error: unknown, client: pg.Client): unknown {
    const isKnown = failureOf(error) !== undefined || error instanceof ForumError;
    return !isKnown && (isResponseTimeout(error) || !this.#open.has(client)) ? new ConnectionLost(error) : error;
  }

  /** Asks the server, over another connection, whether it is still executing work of this connection. */
  async isExecuting(client: pg.Client): Promise<boolean> {
    const session = this.#open.get(client);
    if (session === undefined) return false;
    const probe = newClient(session.url, { connectionTimeoutMillis: PROBE_MS_MAX, query_timeout: PROBE_MS_MAX });
    probe.on('error', () => {});
    try {
      await probe.connect();
      return (await probe.query(EXECUTING, [session.backend])).rowCount === 1;
    } catch {
      return false;
    } finally {
      probe.end().catch(() => {});
    }
  }

  drop(client: pg.Client): void {
    if (!this.#open.delete(client)) return;
    this.#onEnd(client);
    client.end().catch(() => {});
  }

  /** Ends all connections and opens no more. Work that still waits for a connection fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const ends = [...this.#open.keys()].map((client) => client.end().catch(() => {}));
    await Promise.race([Promise.all(ends), sleep(CLOSE_MS_MAX, undefined, { ref: false })]);
  }
}

const EXECUTING = "SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active'";

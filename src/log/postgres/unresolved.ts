// Work that a caller gave up while the server still does it, as a commit does that waits for a synchronous standby. Its connection stays open:
// a connection that is left leaves its session waiting at the server, where sessions would pile up and hold locks until the standby is back.
import type pg from 'pg';
import { detach } from '../../process/detach.ts';
import { newClient } from './driver.ts';

const PROBE_MS_MAX = 5_000;
const PROBE_INTERVAL_MS = 5_000;

/** The caller's time is over, or that of those before it, and the server is still at work. */
export class Unresolved extends Error {}

interface HeldClient {
  readonly client: pg.Client;
  readonly url: string;
}

interface UnresolvedOptions {
  /** The server has done the work. */
  readonly onResolved: (client: pg.Client) => void;
  /** The server is gone, or does not know of the work. */
  readonly onLost: (client: pg.Client) => void;
}

export class UnresolvedWork {
  readonly #options: UnresolvedOptions;
  readonly #held = new Set<pg.Client>();

  constructor(options: UnresolvedOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  forget(client: pg.Client): void {
    this.#held.delete(client);
  }

  /** Keeps the connection until the work is done; returns false if the server is not at work on it. */
  async hold(held: HeldClient): Promise<boolean> {
    const { client } = held;
    this.#held.add(client);
    client.once('drain', () => this.#resolve(client));
    if (await isAtWork(held)) {
      detach(this.#watch(held));
      return true;
    }
    // It may have been done meanwhile.
    return !this.#held.delete(client);
  }

  #resolve(client: pg.Client): void {
    if (this.#held.delete(client)) this.#options.onResolved(client);
  }

  /** The server may go away later, without a word. */
  async #watch(held: HeldClient): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, PROBE_INTERVAL_MS).unref());
      if (!this.#held.has(held.client)) return;
      if ((await isAtWork(held)) || !this.#held.delete(held.client)) continue;
      return this.#options.onLost(held.client);
    }
  }
}

/** Asks the server over another connection. */
async function isAtWork({ client, url }: HeldClient): Promise<boolean> {
  const probe = newClient(url, { connectionTimeoutMillis: PROBE_MS_MAX, query_timeout: PROBE_MS_MAX });
  probe.on('error', () => {});
  try {
    await probe.connect();
    // The types lack the process of the session, which the server announces.
    const { processID } = client as { readonly processID?: number };
    const { rowCount } = await probe.query(AT_WORK, [processID]);
    return rowCount === 1;
  } catch {
    return false;
  } finally {
    probe.end().catch(() => {});
  }
}

const AT_WORK = "SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active'";

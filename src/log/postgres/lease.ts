// A lease: one node holds it for a few seconds, and renews it while it runs. If the holder freezes, dies or loses its connection, another
// node acquires the lease once it has expired by the database's clock. From then on the former holder's appends are rejected.
import { randomUUID } from 'node:crypto';
import { repeat } from '../../process/detach.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { Sql } from '../sql/sql.ts';
import type { Lease } from '../store.ts';

const LEASE_MS = 4_000;
const EXTEND_INTERVAL_MS = 1_000;

export class PostgresLease implements Lease {
  readonly #name: string;
  readonly #query: Sql['query'];
  /** Stops renewing, and lets the lease expire. */
  readonly stop: () => void;
  #holder: string = randomUUID();
  /** A performance.now(), measured from before the claim was sent, so it is never later than the end by the database's clock. */
  #endsAt: Millis = 0;
  #claiming: Promise<void> | undefined;

  constructor(name: string, query: Sql['query']) {
    this.#name = name;
    this.#query = query;
    this.stop = repeat(() => this.#renew(), EXTEND_INTERVAL_MS);
  }

  get token(): string | undefined {
    return performance.now() < this.#endsAt ? this.#holder : undefined;
  }

  #renew(): Promise<void> {
    // Another node may have held the lease since it expired, so a new claim uses a new token.
    if (this.token === undefined) this.giveUp(this.#holder);
    this.#claiming = this.#claim(this.#holder).catch(() => {});
    return this.#claiming;
  }

  async #claim(holder: string): Promise<void> {
    const sentAt = performance.now();
    const rows = await this.#query(CLAIM, [this.#name, holder, LEASE_MS]);
    if (holder === this.#holder) this.#endsAt = rows.length > 0 ? sentAt + LEASE_MS : 0;
  }

  /** Abandons a token: an append with an unknown outcome may still be written while the lease is held under it. */
  giveUp(token: string): void {
    if (token !== this.#holder) return;
    this.#holder = randomUUID();
    this.#endsAt = 0;
  }

  async release(): Promise<void> {
    this.stop();
    await this.#claiming;
    if (this.token === undefined) return;
    this.#endsAt = 0;
    await this.#query('DELETE FROM leases WHERE holder = $1', [this.#holder]).catch(() => {});
  }
}

/** An `ends_at` more than LEASE_MS ahead was written before the clock was set back, so that lease counts as expired. */
const CLAIM = `
INSERT INTO leases VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
  WHERE leases.holder = excluded.holder OR leases.ends_at < clock_timestamp()
    OR leases.ends_at > clock_timestamp() + $3 * interval '1 millisecond'
RETURNING holder`;

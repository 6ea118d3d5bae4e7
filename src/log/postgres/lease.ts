// A lease: one node holds it for a few seconds, and extends it as long as it runs. If the holder freezes, dies or loses its connection,
// another node takes the lease when its time is over by the database's clock; from then on the former holder's appends are rejected.
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
  /** Leaves the lease to its time. */
  readonly stop: () => void;
  #hold: string = randomUUID();
  /** By performance.now(), counted from before the claim was sent: never later than by the database's clock. */
  #endsAt: Millis = 0;
  #claiming: Promise<void> | undefined;

  constructor(name: string, query: Sql['query']) {
    this.#name = name;
    this.#query = query;
    this.stop = repeat(() => this.#keep(), EXTEND_INTERVAL_MS);
  }

  get token(): string | undefined {
    return performance.now() < this.#endsAt ? this.#hold : undefined;
  }

  #keep(): Promise<void> {
    // A hold that has ended is not resumed: another node may have held the lease since.
    if (this.token === undefined) this.giveUp(this.#hold);
    this.#claiming = this.#claim(this.#hold).catch(() => {});
    return this.#claiming;
  }

  async #claim(hold: string): Promise<void> {
    const askedAt = performance.now();
    const rows = await this.#query(CLAIM, [this.#name, hold, LEASE_MS]);
    if (hold === this.#hold) this.#endsAt = rows.length > 0 ? askedAt + LEASE_MS : 0;
  }

  /** An append with an unknown outcome may still be written while its hold lasts. So the hold ends, by its time or by a new one. */
  giveUp(token: string): void {
    if (token !== this.#hold) return;
    this.#hold = randomUUID();
    this.#endsAt = 0;
  }

  async release(): Promise<void> {
    this.stop();
    await this.#claiming;
    if (this.token === undefined) return;
    this.#endsAt = 0;
    await this.#query('DELETE FROM leases WHERE holder = $1', [this.#hold]).catch(() => {});
  }
}

/** An end more than a lease ahead was written before the clock was set back: that lease is over. */
const CLAIM = `
INSERT INTO leases VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
  WHERE leases.holder = excluded.holder OR leases.ends_at < clock_timestamp()
    OR leases.ends_at > clock_timestamp() + $3 * interval '1 millisecond'
RETURNING holder`;

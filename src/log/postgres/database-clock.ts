// The database's time, which all nodes use. A node ahead of it would end phases early. Why no node is ahead:
//
// 1. The database reads its clock between the request and the response. So its offset from the monotonic clock is at least
//    (time - receivedAt) and at most (time - sentAt).
// 2. A node uses the proven minimum, so its clock is behind the database's by at most the round trip.
// 3. Each of several consecutive readings gives valid bounds, so the highest minimum and the lowest maximum apply.
// 4. A long round trip gives wide bounds. A node uses them only to correct an offset outside them, and not before the first exact measurement.
// 5. Between measurements the clock follows the monotonic clock, which is independent of changes to the machine's clock.
// 6. If the database's clock deviates from that, someone has set it, possibly by mistake, so it is measured again soon. The reading with each
//    persisted clock detects that within a second or two, and serves no other purpose.
import type { Client } from 'pg';
import { detach } from '../../process/detach.ts';
import type { Millis } from '../../vocabulary/values.ts';

const READINGS = 4;
/** A longer round trip means that the network or a process in between is stalled. */
const ROUND_TRIP_MS_MAX = 250;
const INTERVAL_MS = 60_000;
/** A start fails after this many inexact measurements. */
const FIRST_MEASUREMENTS_MAX = 10;
/** An inexact measurement is repeated sooner. */
const RETRY_MS = 5_000;
const DRIFT_MS_MIN = 100;
/** The maximum drift between two measurements, unless a clock was set. */
const STEADY_MS_MAX = 1_000;

interface DatabaseClockOptions {
  readonly run: (work: (client: Client) => Promise<OffsetBounds>) => Promise<OffsetBounds>;
  readonly onDrift?: ((driftMillis: Millis) => void) | undefined;
  readonly elapsed?: (() => Millis) | undefined;
}

/** Bounds of the database's time minus the monotonic clock. */
interface OffsetBounds {
  readonly min: Millis;
  readonly max: Millis;
}

export class DatabaseClock {
  readonly #options: DatabaseClockOptions;
  readonly #elapsed: () => Millis;
  /** Derived from the machine's clock until the first measurement. */
  #offset: Millis;
  #isMeasured = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: DatabaseClockOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed ?? (() => performance.now());
    this.#offset = Date.now() - this.#elapsed();
  }

  now(): Millis {
    return Math.floor(this.#elapsed() + this.#offset);
  }

  /** Measures now and then periodically. Throws if the first measurement fails, or the database is too slow for an exact one. */
  async start(): Promise<void> {
    for (let left = FIRST_MEASUREMENTS_MAX; !(await this.measure()); left--) {
      if (left > 1) continue;
      const problem = `the database takes more than ${ROUND_TRIP_MS_MAX} ms to respond`;
      throw new Error(`${problem}: its clock, by which all nodes decide, can't be read`);
    }
    this.#measureLater(INTERVAL_MS);
  }

  /**
   * Begins a reading that is combined with other work. Call the returned function with the database's time from that work: if it contradicts
   * this clock, the offset is measured again.
   */
  beginReading(): (time: Millis) => void {
    const sentAt = this.#elapsed();
    return (time) => {
      const [min, max] = [time - this.#elapsed(), time - sentAt];
      if (this.#offset < min - STEADY_MS_MAX || this.#offset > max + STEADY_MS_MAX) this.#measureLater(0);
    };
  }

  #measureLater(millis: Millis): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    const measure = async () => {
      const before = this.#offset;
      const isExact = await this.measure().catch(() => false);
      const isSteady = Math.abs(this.#offset - before) < STEADY_MS_MAX;
      this.#measureLater(isExact && isSteady ? INTERVAL_MS : RETRY_MS);
    };
    this.#timer = setTimeout(() => detach(measure()), millis).unref();
  }

  /** Returns whether the measurement was exact: the clock is now behind the database's by at most a short round trip. */
  async measure(): Promise<boolean> {
    return this.#apply(await this.#options.run((client) => readOffset(client, this.#elapsed)));
  }

  async measureOn(client: Client): Promise<boolean> {
    return this.#apply(await readOffset(client, this.#elapsed));
  }

  #apply({ min, max }: OffsetBounds): boolean {
    // The database's clock was set during the measurement.
    if (min > max) return false;
    const isExact = max - min <= ROUND_TRIP_MS_MAX;
    if (!isExact && !this.#isMeasured) return false;
    const before = this.#offset;
    this.#offset = isExact ? min : Math.min(Math.max(before, min), max);
    this.#isMeasured = true;
    const drift = Math.round(this.#offset - before);
    if (Math.abs(drift) >= DRIFT_MS_MIN) this.#options.onDrift?.(drift);
    return isExact;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}

const READ_CLOCK = {
  name: 'clock',
  text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time',
};

async function readOffset(client: Client, elapsed: () => Millis): Promise<OffsetBounds> {
  let min = Number.NEGATIVE_INFINITY;
  let max = Number.POSITIVE_INFINITY;
  for (let reading = 0; reading < READINGS; reading++) {
    const sentAt = elapsed();
    const { rows } = await client.query<{ readonly time: Millis }>(READ_CLOCK);
    const [{ time }] = rows as [{ readonly time: Millis }];
    min = Math.max(min, time - elapsed());
    max = Math.min(max, time - sentAt);
  }
  return { min, max };
}

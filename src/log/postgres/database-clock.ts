// The database's time, which all nodes use. A node ahead of it would end phases early. Why none is:
//
// 1. The database reads its clock between the request and the response. So its lead over the time that has passed is at least
//    (time - answeredAt) and at most (time - askedAt).
// 2. A node uses the proved minimum. Its clock is then behind the database's by no more than the round trip.
// 3. All of several readings in a row are true, so the highest minimum and the lowest maximum count.
// 4. A long round trip proves little: a node only corrects what it proves wrong, and ignores it before the first exact measurement.
// 5. Between measurements the clock advances by the time that has passed, which follows no change of the machine's clock.
// 6. If the database's clock deviates from that, somebody has set it, maybe by mistake: it is measured again soon. The reading with each
//    persisted clock detects that within a second or two, and serves no other purpose.
import type { Client } from 'pg';
import { detach } from '../../process/detach.ts';
import type { Millis } from '../../vocabulary/values.ts';

const READINGS = 4;
/** A longer round trip means that the network or a process in between hangs. */
const ROUND_TRIP_MS_MAX = 250;
const INTERVAL_MS = 60_000;
/** Attempts before a start fails, if each proved little. */
const FIRST_MEASUREMENTS_MAX = 10;
/** A measurement that proved little is repeated sooner. */
const RETRY_MS = 5_000;
const DRIFT_MS_MIN = 100;
/** Two clocks drift apart by no more between two measurements, unless one of them is set. */
const STEADY_MS_MAX = 1_000;

interface DatabaseClockOptions {
  readonly run: (work: (client: Client) => Promise<Lead>) => Promise<Lead>;
  readonly onDrift?: ((driftMillis: Millis) => void) | undefined;
  readonly elapsed?: (() => Millis) | undefined;
}

/** How far the database's time is ahead of the time that has passed. */
interface Lead {
  readonly least: Millis;
  readonly most: Millis;
}

export class DatabaseClock {
  readonly #options: DatabaseClockOptions;
  readonly #elapsed: () => Millis;
  /** From the machine's clock until the first measurement. */
  #lead: Millis;
  #isMeasured = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: DatabaseClockOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed ?? (() => performance.now());
    this.#lead = Date.now() - this.#elapsed();
  }

  now(): Millis {
    return Math.floor(this.#elapsed() + this.#lead);
  }

  /** Measures now, and again from time to time. Throws if the first measurement fails, or the database is too slow for one. */
  async start(): Promise<void> {
    for (let left = FIRST_MEASUREMENTS_MAX; !(await this.measure()); left--) {
      if (left > 1) continue;
      const problem = `the database takes more than ${ROUND_TRIP_MS_MAX} ms to respond`;
      throw new Error(`${problem}: its clock, by which all nodes decide, can't be read`);
    }
    this.#measureLater(INTERVAL_MS);
  }

  /**
   * Begins a reading with other work. Call the function with the database's time that the work returned: it measures again if that
   * contradicts this clock.
   */
  beginReading(): (time: Millis) => void {
    const askedAt = this.#elapsed();
    return (time) => {
      const [least, most] = [time - this.#elapsed(), time - askedAt];
      if (this.#lead < least - STEADY_MS_MAX || this.#lead > most + STEADY_MS_MAX) this.#measureLater(0);
    };
  }

  #measureLater(millis: Millis): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    const measure = async () => {
      const before = this.#lead;
      const isExact = await this.measure().catch(() => false);
      const isSteady = Math.abs(this.#lead - before) < STEADY_MS_MAX;
      this.#measureLater(isExact && isSteady ? INTERVAL_MS : RETRY_MS);
    };
    this.#timer = setTimeout(() => detach(measure()), millis).unref();
  }

  /** Returns whether the clock is now behind the database's by a short round trip at most. */
  async measure(): Promise<boolean> {
    return this.#take(await this.#options.run((client) => readLead(client, this.#elapsed)));
  }

  async measureOn(client: Client): Promise<boolean> {
    return this.#take(await readLead(client, this.#elapsed));
  }

  #take({ least, most }: Lead): boolean {
    // The database's clock was set in between.
    if (least > most) return false;
    const isExact = most - least <= ROUND_TRIP_MS_MAX;
    if (!isExact && !this.#isMeasured) return false;
    const before = this.#lead;
    this.#lead = isExact ? least : Math.min(Math.max(before, least), most);
    this.#isMeasured = true;
    const drift = Math.round(this.#lead - before);
    if (Math.abs(drift) >= DRIFT_MS_MIN) this.#options.onDrift?.(drift);
    return isExact;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}

const READ = {
  name: 'clock',
  text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time',
};

async function readLead(client: Client, elapsed: () => Millis): Promise<Lead> {
  let least = Number.NEGATIVE_INFINITY;
  let most = Number.POSITIVE_INFINITY;
  for (let reading = 0; reading < READINGS; reading++) {
    const askedAt = elapsed();
    const { rows } = await client.query<{ readonly time: Millis }>(READ);
    const [{ time }] = rows as [{ readonly time: Millis }];
    least = Math.max(least, time - elapsed());
    most = Math.min(most, time - askedAt);
  }
  return { least, most };
}

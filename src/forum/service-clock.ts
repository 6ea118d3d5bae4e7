// The service's clock, by which every rule decides. It follows its source (the machine's clock, or the database's) as long as the source
// advances with elapsed time. Why neither a wrong clock nor a wrong time server locks agents out:
//
// 1. The clock never falls, and is never before the log's latest time: no phase is reopened.
// 2. It follows steps of the source up to CLOCK_STEP_MS_MAX, which agents' signatures tolerate.
// 3. A longer step is a jump: the source is wrong, or time passed unseen, as in a paused virtual machine. The service can't tell which, so
//    the clock advances with elapsed time, nothing is decided, and the jump is reported. It ends when the source returns, or when the
//    source has kept the new time long enough to be trusted. Sleep of the machine is not a jump (elapsed-time.ts).
// 4. While a trusted source is behind the log, nothing is decided. An operator who knows that the log's time is wrong resets it
//    (log/clock-reset.ts).
// 5. So no line gets a doubtful time, nor one that a client with the right time or an auditor would reject.
import type { Millis } from '../vocabulary/values.ts';

/** A longer step of the source, or a head that is further ahead, makes the time doubtful. */
export const CLOCK_STEP_MS_MAX = 30_000;

export interface TimeSource {
  readonly time: () => Millis;
  /** Monotonic; changes of `time` don't affect it. */
  readonly elapsed: () => Millis;
}

export interface ClockProblem {
  /** How far the source is ahead of the service's time; negative if it is behind. */
  readonly aheadMillis: Millis;
  readonly reason: string;
}

interface ServiceClockOptions {
  readonly source: TimeSource;
  /** The latest time in the log. */
  readonly lastAt: Millis;
  /** How long a source must keep the new time after a jump to be trusted. */
  readonly jumpMillis: Millis;
  /** Called when a problem begins, changes its kind or ends. */
  readonly onProblem?: ((problem: ClockProblem | undefined) => void) | undefined;
}

interface Jump {
  readonly since: Millis;
  readonly aheadMillis: Millis;
}

export class ServiceClock {
  readonly #options: ServiceClockOptions;
  /** The service's time minus the elapsed time. */
  #lead: Millis;
  #latest: Millis;
  #jump: Jump | undefined;
  #reported: 'jumped' | 'behind' | undefined;

  constructor(options: ServiceClockOptions) {
    const { source, lastAt } = options;
    this.#options = options;
    this.#lead = source.time() - source.elapsed();
    this.#latest = lastAt;
    this.now();
  }

  now(): Millis {
    const { source } = this.#options;
    const elapsed = source.elapsed();
    this.#follow(source.time(), elapsed);
    this.#latest = Math.max(this.#latest, Math.floor(elapsed + this.#lead));
    this.#report(elapsed);
    return this.#latest;
  }

  /** Returns why nothing can be decided now; undefined while the clock is right. */
  problem(): ClockProblem | undefined {
    this.now();
    return this.#problemAt(this.#options.source.elapsed());
  }

  #follow(time: Millis, elapsed: Millis): void {
    const aheadMillis = time - elapsed - this.#lead;
    if (Math.abs(aheadMillis) > CLOCK_STEP_MS_MAX) {
      const isSame = this.#jump && Math.abs(aheadMillis - this.#jump.aheadMillis) <= CLOCK_STEP_MS_MAX;
      if (!this.#jump || !isSame) this.#jump = { since: elapsed, aheadMillis };
      if (elapsed - this.#jump.since < this.#options.jumpMillis) return;
    }
    this.#jump = undefined;
    this.#lead = time - elapsed;
  }

  #problemAt(elapsed: Millis): ClockProblem | undefined {
    if (this.#jump !== undefined) {
      const { aheadMillis, since } = this.#jump;
      const left = Math.ceil((this.#options.jumpMillis - (elapsed - since)) / 1000);
      const direction = aheadMillis > 0 ? 'ahead' : 'back';
      const reason = `the clock jumped ${direction} by ${seconds(aheadMillis)} s: nothing is decided until it is back, or has stood by it for another ${left} s`;
      return { aheadMillis, reason };
    }
    const aheadMillis = elapsed + this.#lead - this.#latest;
    if (aheadMillis >= -CLOCK_STEP_MS_MAX) return undefined;
    const reason = `the clock is ${seconds(aheadMillis)} s behind the log: nothing is decided until it has caught up; if the log's time is wrong, stop the service and run chambers admin reset-clock`;
    return { aheadMillis, reason };
  }

  #report(elapsed: Millis): void {
    const problem = this.#problemAt(elapsed);
    const kind = problem && (this.#jump === undefined ? 'behind' : 'jumped');
    if (kind === this.#reported) return;
    this.#reported = kind;
    this.#options.onProblem?.(problem);
  }
}

function seconds(millis: Millis): number {
  return Math.round(Math.abs(millis) / 1000);
}

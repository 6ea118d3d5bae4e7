// The service's clock, by which all rules decide. It follows its source (the machine's or the database's clock) as long as the source
// advances with elapsed time. Why neither a wrong clock nor a wrong time server locks agents out:
//
// 1. The clock never goes backwards, and is never before the log's latest time, so no phase reopens.
// 2. The clock follows steps of the source up to CLOCK_STEP_MS_MAX. Signature checks tolerate such steps.
// 3. A longer step is a jump: either the source is wrong, or time passed unnoticed, as in a paused virtual machine. The service can't
//    tell which. So the clock advances with elapsed time, nothing is decided, and the jump is reported. The jump ends when the source
//    returns, or when the source has kept the new time long enough to be trusted. System sleep is not a jump (elapsed-time.ts).
// 4. While a trusted source is behind the log, nothing is decided. If the log's time is wrong, an operator can reset it (log/clock-
//    reset.ts).
// 5. So no line gets a doubtful time, or a time that an auditor or a client with a correct clock would reject.
import type { Millis } from '../vocabulary/values.ts';

/** The time is doubtful after a longer step of the source, or if a head is further in the future. */
export const CLOCK_STEP_MS_MAX = 30_000;

export interface TimeSource {
  readonly time: () => Millis;
  /** Monotonic: setting the clock does not affect it. */
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
  /** How long a source must keep the new time after a jump before it is trusted. */
  readonly jumpMillis: Millis;
  /** Called when a problem begins, changes or ends. */
  readonly onProblem?: ((problem: ClockProblem | undefined) => void) | undefined;
}

interface Jump {
  readonly since: Millis;
  readonly aheadMillis: Millis;
}

export class ServiceClock {
  readonly #options: ServiceClockOptions;
  /** The service's time minus the elapsed time. */
  #offset: Millis;
  #latest: Millis;
  #jump: Jump | undefined;
  #reported: 'jumped' | 'behind' | undefined;

  constructor(options: ServiceClockOptions) {
    const { source, lastAt } = options;
    this.#options = options;
    this.#offset = source.time() - source.elapsed();
    this.#latest = lastAt;
    this.now();
  }

  now(): Millis {
    const { source } = this.#options;
    const elapsed = source.elapsed();
    this.#follow(source.time(), elapsed);
    this.#latest = Math.max(this.#latest, Math.floor(elapsed + this.#offset));
    this.#report(elapsed);
    return this.#latest;
  }

  /** The reason why nothing can be decided now; undefined if the time is certain. */
  problem(): ClockProblem | undefined {
    this.now();
    return this.#problemAt(this.#options.source.elapsed());
  }

  #follow(time: Millis, elapsed: Millis): void {
    const aheadMillis = time - elapsed - this.#offset;
    if (Math.abs(aheadMillis) > CLOCK_STEP_MS_MAX) {
      const isSame = this.#jump && Math.abs(aheadMillis - this.#jump.aheadMillis) <= CLOCK_STEP_MS_MAX;
      if (!this.#jump || !isSame) this.#jump = { since: elapsed, aheadMillis };
      if (elapsed - this.#jump.since < this.#options.jumpMillis) return;
    }
    this.#jump = undefined;
    this.#offset = time - elapsed;
  }

  #problemAt(elapsed: Millis): ClockProblem | undefined {
    if (this.#jump !== undefined) {
      const { aheadMillis, since } = this.#jump;
      const left = Math.ceil((this.#options.jumpMillis - (elapsed - since)) / 1000);
      const direction = aheadMillis > 0 ? 'ahead' : 'back';
      const reason = `the clock jumped ${direction} by ${seconds(aheadMillis)} s: no moves are accepted until it returns or has kept the new time for another ${left} s`;
      return { aheadMillis, reason };
    }
    const aheadMillis = elapsed + this.#offset - this.#latest;
    if (aheadMillis >= -CLOCK_STEP_MS_MAX) return undefined;
    const reason = `the clock is ${seconds(aheadMillis)} s behind the log: no moves are accepted until it has caught up; if the log's time is wrong, stop the service and run chambers admin reset-clock`;
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

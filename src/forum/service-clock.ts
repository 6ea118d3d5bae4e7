// The service's clock: every rule asks it, and nothing else does. It follows its source (the machine's clock, or the database's) as long
// as that goes as time goes by. Why neither a wrong clock nor a wrong answer of a time server locks agents out:
//
// 1. It never falls, and is never before what the log has shown: no phase is reopened.
// 2. A step of the source that is no longer than CLOCK_STEP_MS_MAX is followed: agents' signatures tolerate it.
// 3. A longer one is a jump: of a wrong clock, or of time that passed unseen, as for a virtual machine that was paused. Nothing here can
//    tell which, so the clock goes on as time goes by, nothing is decided, and the jump is shown. It is over once the source is back; or
//    once it has stood by it for so long that it is believed. Sleep of the machine is no jump (elapsed-time.ts).
// 4. A source that is believed, and is behind what was shown, is waited for: nothing is decided meanwhile. An operator who knows the log's
//    time to be wrong resets it (log/clock-reset.ts).
// 5. So no line is written at a time that is in doubt, and none that a client with the right time, or an auditor, could not accept.
import type { Millis } from '../vocabulary/values.ts';

/** How far a clock may be set at once, or a stream's head be ahead, without a doubt about it. */
export const CLOCK_STEP_MS_MAX = 30_000;

export interface TimeSource {
  readonly time: () => Millis;
  /** The time that has passed since any moment; never falls, and follows no change of `time`. */
  readonly elapsed: () => Millis;
}

export interface ClockProblem {
  /** What the source is ahead of the service's time; negative if it is behind. */
  readonly aheadMillis: Millis;
  /** A sentence. */
  readonly reason: string;
}

interface ServiceClockOptions {
  readonly source: TimeSource;
  /** The latest time that the log has shown. */
  readonly lastAt: Millis;
  /** How long a source must stand by a jump to be believed. */
  readonly jumpMillis: Millis;
  /** Called when a problem begins or changes its kind, and when it is over. */
  readonly onProblem?: ((problem: ClockProblem | undefined) => void) | undefined;
}

interface Jump {
  readonly since: Millis;
  readonly aheadMillis: Millis;
}

export class ServiceClock {
  readonly #options: ServiceClockOptions;
  /** What the time is ahead of the time that has passed. */
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

  /** Why nothing can be decided now; undefined while the clock is right. */
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

// The time that has passed, with that in which the machine slept: performance.now() stands still meanwhile.
import { uptime } from 'node:os';

/** A clock that was set, or a sleep, is looked at from this length on; os.uptime() is in whole seconds on some systems. */
const SLEEP_MS_MIN = 2_000;

export interface MachineClocks {
  /** Milliseconds since 1970, which may be set. */
  readonly time: () => number;
  /** Milliseconds while the machine is awake. */
  readonly awake: () => number;
  /** Milliseconds since the machine was started, asleep or awake. */
  readonly up: () => number;
}

const MACHINE: MachineClocks = {
  time: () => Date.now(),
  awake: () => performance.now(),
  up: () => uptime() * 1000,
};

export class ElapsedTime {
  readonly #clocks: MachineClocks;
  /** What the time and the uptime are ahead of the time awake. */
  #timeLead: number;
  readonly #upLead: number;
  #slept = 0;

  constructor(clocks = MACHINE) {
    this.#clocks = clocks;
    this.#timeLead = clocks.time() - clocks.awake();
    this.#upLead = clocks.up() - clocks.awake();
  }

  /** Never falls. The uptime costs a system call, so it is read only when the time says that something has happened. */
  readonly read = (): number => {
    const { time, awake, up } = this.#clocks;
    const now = awake();
    const timeLead = time() - now;
    if (Math.abs(timeLead - this.#timeLead) >= SLEEP_MS_MIN) {
      this.#timeLead = timeLead;
      const slept = up() - now - this.#upLead;
      if (slept - this.#slept >= SLEEP_MS_MIN) this.#slept = slept;
    }
    return now + this.#slept;
  };
}

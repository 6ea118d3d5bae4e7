// Elapsed time, including sleep of the machine. performance.now() stops during sleep.
import { uptime } from 'node:os';

/** Shorter clock changes and sleeps are ignored, because os.uptime() returns whole seconds on some systems. */
const SLEEP_MS_MIN = 2_000;

export interface MachineClocks {
  /** Milliseconds since 1970. The clock may be set. */
  readonly time: () => number;
  /** Milliseconds that the machine was awake. */
  readonly awake: () => number;
  /** Milliseconds since the machine booted, including sleep. */
  readonly up: () => number;
}

const MACHINE: MachineClocks = {
  time: () => Date.now(),
  awake: () => performance.now(),
  up: () => uptime() * 1000,
};

export class ElapsedTime {
  readonly #clocks: MachineClocks;
  /** The wall clock minus the time awake. */
  #timeOffset: number;
  /** The uptime minus the time awake, when the measurement began. */
  readonly #uptimeOffset: number;
  #slept = 0;

  constructor(clocks = MACHINE) {
    this.#clocks = clocks;
    this.#timeOffset = clocks.time() - clocks.awake();
    this.#uptimeOffset = clocks.up() - clocks.awake();
  }

  /** Never decreases. Reading the uptime costs a system call, so it is read only if the time has changed unexpectedly. */
  readonly read = (): number => {
    const { time, awake, up } = this.#clocks;
    const now = awake();
    const timeOffset = time() - now;
    if (Math.abs(timeOffset - this.#timeOffset) >= SLEEP_MS_MIN) {
      this.#timeOffset = timeOffset;
      const slept = up() - now - this.#uptimeOffset;
      if (slept - this.#slept >= SLEEP_MS_MIN) this.#slept = slept;
    }
    return now + this.#slept;
  };
}

// The service's clock as seen from here: phases follow from it, and the local one may be wrong by minutes.
import type { Millis } from '../vocabulary/values.ts';

/** A span of local time, in which a request was sent and answered. */
export interface Span {
  readonly sentAt: Millis;
  readonly receivedAt: Millis;
}

export interface ServiceTime {
  readonly earliest: Millis;
  readonly latest: Millis;
  /** Told by a Date header, which may be of another clock than the service's, such as a proxy's. */
  readonly isHearsay?: boolean;
}

/** Keeps bounds on how far the service's clock is ahead; the local clock counts as right until they say otherwise. */
export class ServiceClock {
  readonly #local: () => Millis;
  #ahead = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY };
  #isHearsay = true;

  constructor(local: () => Millis = Date.now) {
    this.#local = local;
  }

  local(): Millis {
    return this.#local();
  }

  now(): Millis {
    const { least, most } = this.#ahead;
    return this.#local() + Math.min(Math.max(0, least), most);
  }

  /**
   * Takes in that the service's time was within bounds at some moment of the span. Of two words that contradict each
   * other the newer counts, but hearsay never against the service's own word.
   */
  learn({ earliest, latest, isHearsay = false }: ServiceTime, { sentAt, receivedAt }: Span): void {
    const told = { least: earliest - receivedAt, most: latest - sentAt };
    const both = { least: Math.max(told.least, this.#ahead.least), most: Math.min(told.most, this.#ahead.most) };
    const isContradiction = both.least > both.most;
    if (isContradiction && isHearsay && !this.#isHearsay) return;
    this.#ahead = isContradiction ? told : both;
    this.#isHearsay &&= isHearsay;
  }
}

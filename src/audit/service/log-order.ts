// What only the chambers of one log together show: the order of their ids, and when its release began to name account lines.
import type { Millis } from '../../vocabulary/values.ts';
import type { AccountReference } from '../account/references.ts';

interface Place {
  readonly chamberId: number;
  readonly eventId: number;
  readonly at: Millis;
}

/** The clocks of several nodes differ. */
const CLOCKS_MILLIS = 60_000;
const PROBLEMS_MAX = 1_000;

export class LogOrder {
  readonly #problems: string[] = [];
  /** The newest creation so far. */
  #newest: Place | undefined;
  #firstNaming: Place | undefined;
  #lastOmission: Place | undefined;

  /** Takes the chambers from the oldest to the newest, each with its events that name accounts, or should. */
  take(chamberId: number, references: readonly AccountReference[]): void {
    for (const { eventId, at, accountEventId } of references) {
      const place = { chamberId, eventId, at };
      if (eventId === 1) this.#takeCreation(place);
      if (accountEventId === undefined) {
        if (at > (this.#lastOmission?.at ?? 0)) this.#lastOmission = place;
      } else if (at < (this.#firstNaming?.at ?? Number.POSITIVE_INFINITY)) this.#firstNaming = place;
    }
  }

  problems(): readonly string[] {
    const [named, omitted] = [this.#firstNaming, this.#lastOmission];
    if (named === undefined || omitted === undefined || omitted.at <= named.at) return this.#problems;
    const omission = `event ${omitted.eventId} of chamber ${omitted.chamberId} names no account line`;
    return [...this.#problems, `${omission}, although event ${named.eventId} of chamber ${named.chamberId} did before`];
  }

  #takeCreation(creation: Place): void {
    const { chamberId, at } = this.#newest ?? creation;
    if (at - creation.at > CLOCKS_MILLIS && this.#problems.length < PROBLEMS_MAX)
      this.#problems.push(`chamber ${creation.chamberId} was created before chamber ${chamberId}`);
    if (at <= creation.at) this.#newest = creation;
  }
}

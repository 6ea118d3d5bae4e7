// Checks across all chambers of a log: ids are in order of creation, and later chambers don't omit keys or account lines that earlier
// ones record.
import type { Millis } from '../../vocabulary/values.ts';
import { type AccountReference, isNamingType } from '../account/references.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';

interface EventPosition {
  readonly chamberId: number;
  readonly eventId: number;
  readonly at: Millis;
}

type OrderedChamber = Pick<ChamberAudit, 'pinnedKeys'> & {
  readonly accountReferences: Iterable<AccountReference>;
};

const CLOCK_SKEW_MILLIS = 60_000;
const PROBLEMS_MAX = 1_000;

export class LogOrder {
  readonly #problems: string[] = [];
  #newest: EventPosition | undefined;
  /** The first chamber whose creation records keys, and the problem of a later creation without keys. */
  #firstWithKeys: number | undefined;
  #withoutKeys: string | undefined;
  readonly #naming = { namingTypes: new Naming(), otherTypes: new Naming() };

  /** Call with the chambers oldest first. */
  take(chamberId: number, { accountReferences, pinnedKeys }: OrderedChamber): void {
    for (const reference of accountReferences) {
      const { eventId, at } = reference;
      const position = { chamberId, eventId, at };
      if (reference.type === 'chamber.created') {
        this.#takeCreation(position);
        this.#takeKeys(position, pinnedKeys !== undefined);
      }
      this.#naming[isNamingType(reference) ? 'namingTypes' : 'otherTypes'].take(chamberId, reference);
    }
  }

  problems(): readonly string[] {
    const omissions = Object.values(this.#naming).flatMap((naming) => naming.problem() ?? []);
    return [...this.#problems, ...(this.#withoutKeys === undefined ? [] : [this.#withoutKeys]), ...omissions];
  }

  /** Once a creation records the service's keys, every later one must. */
  #takeKeys({ chamberId, eventId }: EventPosition, hasKeys: boolean): void {
    if (hasKeys) this.#firstWithKeys ??= chamberId;
    else if (this.#firstWithKeys !== undefined)
      this.#withoutKeys ??= `event ${eventId} of chamber ${chamberId} does not record the service’s keys, although the earlier creation of chamber ${this.#firstWithKeys} does`;
  }

  #takeCreation(creation: EventPosition): void {
    const { chamberId, at } = this.#newest ?? creation;
    if (at - creation.at > CLOCK_SKEW_MILLIS && this.#problems.length < PROBLEMS_MAX)
      this.#problems.push(`chamber ${creation.chamberId} was created before chamber ${chamberId}`);
    if (at <= creation.at) this.#newest = creation;
  }
}

/** The first event that names an account line, and the last that does not. */
class Naming {
  #first: EventPosition | undefined;
  #lastOmission: EventPosition | undefined;

  take(chamberId: number, { eventId, at, lastEventId, lastAt, accountEventId }: AccountReference): void {
    if (accountEventId !== undefined) {
      if (at < (this.#first?.at ?? Number.POSITIVE_INFINITY)) this.#first = { chamberId, eventId, at };
    } else if (lastAt > (this.#lastOmission?.at ?? 0)) {
      this.#lastOmission = { chamberId, eventId: lastEventId, at: lastAt };
    }
  }

  problem(): string | undefined {
    const [named, omitted] = [this.#first, this.#lastOmission];
    if (named === undefined || omitted === undefined || omitted.at <= named.at) return undefined;
    const omission = `event ${omitted.eventId} of chamber ${omitted.chamberId} names no account line`;
    return `${omission}, although the earlier event ${named.eventId} of chamber ${named.chamberId} names one`;
  }
}

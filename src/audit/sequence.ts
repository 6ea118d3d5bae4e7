// The place of each line in the log: numbering, the chain of hashes, times. Tells a dropped line from an altered, a repeated
// and a moved one by what its neighbours say, so that the finding names the right event.
import type { ChamberEvent } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { type Hex, NO_PREVIOUS } from '../vocabulary/values.ts';
import { Gaps } from './gaps.ts';
import { leafOf } from './hashes.ts';
import type { Ledger } from './ledger.ts';

export interface Place {
  /** The id under which the line is reported: its own, unless its neighbours prove that wrong. */
  readonly eventId: number;
  readonly leaf: Uint8Array;
  /** `next` continues the log; `late` belongs further up; `repeat` was there already. */
  readonly kind: 'next' | 'late' | 'repeat';
  /** An event that is missing before this one, the first of several. */
  readonly lostEventId: number | undefined;
  /** The event before, when this one holds another hash of it. */
  readonly alteredEventId: number | undefined;
}

interface Head {
  readonly eventId: number;
  readonly leaf: Hex;
}

/** Neighbours further apart than this are not compared: memory stays flat. */
const NEIGHBOURS_MAX = 4_096;

export class Sequence {
  readonly #ledger: Ledger;
  readonly #gaps = new Gaps();
  readonly #leaves = new Map<number, Hex>([[0, NO_PREVIOUS]]);
  /** `prev` of lines whose predecessor has not come. */
  readonly #awaited = new Map<number, Hex>();
  #head: Head = { eventId: 0, leaf: NO_PREVIOUS };
  /** The head before lines that could not be read, which may have been put in. */
  #headBeforeUnreadable: Head | undefined;
  #last: { readonly eventId: number; readonly ts: string } | undefined;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Places a line that holds no event where the next event is due. */
  placeUnreadable(bytes: Uint8Array): number {
    this.#headBeforeUnreadable ??= this.#head;
    this.#advance(this.#head.eventId + 1, toHex(leafOf(bytes)));
    return this.#head.eventId;
  }

  place(event: ChamberEvent, bytes: Uint8Array): Place {
    const leaf = leafOf(bytes);
    const unreadEventId = this.#settleUnreadable(event);
    const due = this.#head.eventId + 1;
    const { eventId, kind } = this.#number(event, due);
    if (kind === 'repeat') return { eventId, kind, leaf, lostEventId: undefined, alteredEventId: undefined };
    const alteredEventId = this.#compare(eventId, event.prev, toHex(leaf)) ? undefined : eventId - 1;
    if (kind === 'next') {
      this.#requireTime(eventId, event.ts);
      this.#advance(eventId, toHex(leaf));
    }
    return { eventId, kind, leaf, lostEventId: unreadEventId ?? (eventId > due ? due : undefined), alteredEventId };
  }

  /** Reports what never came. */
  conclude(): void {
    for (const { from, to } of this.#gaps.ranges()) {
      const missing = from === to ? `event ${from} is missing` : `events ${from} to ${to} are missing`;
      this.#ledger.broken('order', idsOf(from, to), missing);
    }
  }

  /** The event that was unreadable; undefined when the event at hand follows the line before, so that those were put in. */
  #settleUnreadable({ eventId, prev }: ChamberEvent): number | undefined {
    const before = this.#headBeforeUnreadable;
    this.#headBeforeUnreadable = undefined;
    if (before === undefined) return undefined;
    const isPutIn = prev === before.leaf && eventId === before.eventId + 1;
    if (isPutIn) this.#head = before;
    return isPutIn ? undefined : before.eventId + 1;
  }

  #number({ eventId, prev }: ChamberEvent, due: number): Pick<Place, 'eventId' | 'kind'> {
    if (eventId !== due && prev === this.#head.leaf) {
      this.#ledger.broken('order', [due], `event ${due} calls itself event ${eventId}`);
      return { eventId: due, kind: 'next' };
    }
    if (eventId < due) return this.#behind(eventId);
    if (eventId > due) this.#gaps.add(due, eventId - 1);
    this.#ledger.verified('order');
    return { eventId, kind: 'next' };
  }

  #behind(eventId: number): Pick<Place, 'eventId' | 'kind'> {
    const isLate = this.#gaps.fill(eventId);
    const after = this.#head.eventId;
    if (isLate) this.#ledger.broken('order', [eventId, after], `event ${eventId} stands after event ${after}`);
    else this.#ledger.broken('order', [eventId], `event ${eventId} stands there more than once`);
    return { eventId, kind: isLate ? 'late' : 'repeat' };
  }

  /** Compares `prev` with the leaf of the event before, and the leaf with `prev` of the one after, as far as they came. */
  #compare(eventId: number, prev: Hex, leaf: Hex): boolean {
    const before = this.#leaves.get(eventId - 1);
    if (before === undefined) this.#awaited.set(eventId, prev);
    else this.#link(eventId, before === prev);
    const awaited = this.#awaited.get(eventId + 1);
    if (awaited !== undefined) this.#link(eventId + 1, awaited === leaf);
    this.#awaited.delete(eventId + 1);
    this.#leaves.set(eventId, leaf);
    this.#leaves.delete(eventId - NEIGHBOURS_MAX);
    this.#awaited.delete(eventId - NEIGHBOURS_MAX);
    return before === undefined || before === prev;
  }

  #link(eventId: number, holds: boolean): void {
    const follows = `event ${eventId} does not hold the hash of event ${eventId - 1}: one of the two was altered`;
    const starts = 'event 1 names a line before it: its prev must be zeros';
    const finding =
      eventId === 1 ? { eventIds: [1], sentence: starts } : { eventIds: [eventId - 1, eventId], sentence: follows };
    this.#ledger.judge('chain', holds, finding);
  }

  #requireTime(eventId: number, ts: string): void {
    const last = this.#last ?? { eventId, ts };
    this.#last = { eventId, ts };
    this.#ledger.judge('time', ts >= last.ts, {
      eventIds: [last.eventId, eventId],
      sentence: `event ${eventId} (${ts}) is earlier than event ${last.eventId} (${last.ts})`,
    });
  }

  #advance(eventId: number, leaf: Hex): void {
    this.#head = { eventId, leaf };
    this.#leaves.set(eventId, leaf);
  }
}

/** The ends name a long range. */
const IDS_NAMED_MAX = 100;

function idsOf(from: number, to: number): readonly number[] {
  if (to - from >= IDS_NAMED_MAX) return [from, to];
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

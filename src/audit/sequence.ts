// The place of each line in the log: numbering, the chain of hashes, times. The neighbours of a line distinguish a dropped
// one from an altered, a repeated and a moved one, so that the finding names the right event.
import { keccak_256 } from '@noble/hashes/sha3.js';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { type Hex, NO_PREVIOUS } from '../vocabulary/values.ts';
import type { Findings } from './findings.ts';

export interface Position {
  /** The id under which the line is reported: its own, unless its neighbours prove that wrong. */
  readonly eventId: number;
  /** The leaf of the line in the Merkle tree, and `prev` of the next line. */
  readonly leaf: Uint8Array;
  /** `next` continues the log; `late` belongs further up; `repeat` was there already. */
  readonly kind: 'next' | 'late' | 'repeat';
  /** The first event that is missing or unreadable before this one. */
  readonly lostEventId: number | undefined;
  /** The event before, when this one holds another hash of it. */
  readonly alteredEventId: number | undefined;
}

/** By @noble/hashes: the service uses another implementation. */
export function leafOf(line: Uint8Array): Uint8Array {
  return keccak_256(keccak_256(line));
}

interface Head {
  readonly eventId: number;
  readonly leaf: Hex;
}

/** Event ids from and to, inclusive. */
type IdRange = readonly [from: number, to: number];

/** Neighbours further apart than this are not compared: memory stays flat. */
const NEIGHBOURS_MAX = 4_096;

export class Sequence {
  readonly #findings: Findings;
  readonly #leaves = new Map<number, Hex>([[0, NO_PREVIOUS]]);
  /** `prev` of lines whose predecessor is missing so far. */
  readonly #pendingPrevs = new Map<number, Hex>();
  /** Ids that are missing so far, as ranges: an id of a million in a short log costs nothing. */
  #gaps: IdRange[] = [];
  #head: Head = { eventId: 0, leaf: NO_PREVIOUS };
  /** The head before lines that could not be read, which may have been inserted. */
  #headBeforeUnreadable: Head | undefined;
  #last: { readonly eventId: number; readonly ts: string } | undefined;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Places a line without an event where the next event is due, and returns that event's id. */
  placeUnreadable(bytes: Uint8Array): number {
    this.#headBeforeUnreadable ??= this.#head;
    this.#advance(this.#head.eventId + 1, toHex(leafOf(bytes)));
    return this.#head.eventId;
  }

  place(event: ChamberEvent, bytes: Uint8Array): Position {
    const leaf = leafOf(bytes);
    const unreadEventId = this.#resolveUnreadable(event);
    const due = this.#head.eventId + 1;
    const { eventId, kind } = this.#number(event, due);
    if (kind === 'repeat') return { eventId, kind, leaf, lostEventId: undefined, alteredEventId: undefined };
    const alteredEventId = this.#compareHashes(eventId, event.prev, toHex(leaf)) ? undefined : eventId - 1;
    if (kind === 'next') {
      this.#checkTime(eventId, event.ts);
      this.#advance(eventId, toHex(leaf));
    }
    return { eventId, kind, leaf, lostEventId: unreadEventId ?? (eventId > due ? due : undefined), alteredEventId };
  }

  /** Reports the events that never came. */
  conclude(): void {
    for (const [from, to] of this.#gaps) {
      const missing = from === to ? `event ${from} is missing` : `events ${from} to ${to} are missing`;
      this.#findings.broken('order', idsOf(from, to), missing);
    }
  }

  /** The event that was unreadable; undefined when this event follows the line before, so that the unreadable ones were inserted. */
  #resolveUnreadable({ eventId, prev }: ChamberEvent): number | undefined {
    const before = this.#headBeforeUnreadable;
    this.#headBeforeUnreadable = undefined;
    if (before === undefined) return undefined;
    const isInserted = prev === before.leaf && eventId === before.eventId + 1;
    if (isInserted) this.#head = before;
    return isInserted ? undefined : before.eventId + 1;
  }

  #number({ eventId, prev }: ChamberEvent, due: number): Pick<Position, 'eventId' | 'kind'> {
    if (eventId !== due && prev === this.#head.leaf) {
      this.#findings.broken('order', [due], `event ${due} has the number ${eventId}`);
      return { eventId: due, kind: 'next' };
    }
    if (eventId < due) return this.#numberBehind(eventId);
    if (eventId > due) this.#gaps.push([due, eventId - 1]);
    this.#findings.verified('order');
    return { eventId, kind: 'next' };
  }

  /** A line behind its place is late when it fills a gap, and a repetition when it does not. */
  #numberBehind(eventId: number): Pick<Position, 'eventId' | 'kind'> {
    const after = this.#head.eventId;
    const gap = this.#gaps.find(([from, to]) => from <= eventId && eventId <= to);
    if (gap === undefined) {
      this.#findings.broken('order', [eventId], `event ${eventId} occurs more than once`);
      return { eventId, kind: 'repeat' };
    }
    const rest: readonly IdRange[] = [
      [gap[0], eventId - 1],
      [eventId + 1, gap[1]],
    ];
    this.#gaps = this.#gaps.flatMap((range) => (range === gap ? rest.filter(([from, to]) => from <= to) : [range]));
    this.#findings.broken('order', [eventId, after], `event ${eventId} comes after event ${after}`);
    return { eventId, kind: 'late' };
  }

  /** Compares `prev` with the leaf of the event before, and the leaf with `prev` of the one after, where these were read. */
  #compareHashes(eventId: number, prev: Hex, leaf: Hex): boolean {
    const before = this.#leaves.get(eventId - 1);
    if (before === undefined) this.#pendingPrevs.set(eventId, prev);
    else this.#checkLink(eventId, before === prev);
    const nextPrev = this.#pendingPrevs.get(eventId + 1);
    if (nextPrev !== undefined) this.#checkLink(eventId + 1, nextPrev === leaf);
    this.#pendingPrevs.delete(eventId + 1);
    this.#leaves.set(eventId, leaf);
    this.#leaves.delete(eventId - NEIGHBOURS_MAX);
    this.#pendingPrevs.delete(eventId - NEIGHBOURS_MAX);
    return before === undefined || before === prev;
  }

  #checkLink(eventId: number, holds: boolean): void {
    const sentence =
      eventId === 1
        ? 'event 1 refers to a line before it: its prev must be zeros'
        : `event ${eventId} does not hold the hash of event ${eventId - 1}: one of the two was altered`;
    this.#findings.judge('chain', holds, { eventIds: eventId === 1 ? [1] : [eventId - 1, eventId], sentence });
  }

  #checkTime(eventId: number, ts: string): void {
    const last = this.#last ?? { eventId, ts };
    this.#last = { eventId, ts };
    this.#findings.judge('time', ts >= last.ts, {
      eventIds: [last.eventId, eventId],
      sentence: `event ${eventId} (${ts}) is earlier than event ${last.eventId} (${last.ts})`,
    });
  }

  #advance(eventId: number, leaf: Hex): void {
    this.#head = { eventId, leaf };
    this.#leaves.set(eventId, leaf);
  }
}

/** A longer range is named by its ends. */
const IDS_NAMED_MAX = 100;

function idsOf(from: number, to: number): readonly number[] {
  if (to - from >= IDS_NAMED_MAX) return [from, to];
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

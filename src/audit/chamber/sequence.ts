// Determines each line's position in the log from its number, hash chain and time. The neighbours show whether a line was dropped,
// altered, repeated or reordered, so that the finding names the right event.
import type { ChamberEvent } from '../../vocabulary/events.ts';
import { fromHex, type Hex, instantOf, type Millis, NO_PREVIOUS, toHex } from '../../vocabulary/values.ts';
import { leafOf } from '../line/leaf.ts';
import type { Findings } from '../report/findings.ts';
import { RecentLeaves } from './seen.ts';

export interface Position {
  /** The id used in reports: the line's own, unless its neighbours contradict it. */
  readonly eventId: number;
  /** The line's leaf in the Merkle tree, which is `prev` of the next line. */
  readonly leaf: Uint8Array;
  /** `next` continues the log; `late` belongs earlier; `repeat` was already read. */
  readonly kind: 'next' | 'late' | 'repeat';
  readonly lostEventId?: number | undefined;
  /** The previous event, if its hash differs from this line's `prev`. */
  readonly alteredEventId?: number | undefined;
}

/** Both ids are inclusive. */
type IdRange = readonly [from: number, to: number];

/** By event id. */
export type Leaves = ReadonlyMap<number, Hex>;

/** For a longer range, a finding names only its ends. */
const IDS_NAMED_MAX = 100;
const TRUE_LEAVES_MAX = 1_000;
/** Bounds the memory: neighbours that are further apart in the input are not compared. */
const NEIGHBOURS_MAX = 4_096;

export class Sequence {
  readonly #findings: Findings;
  readonly #leaves = new Map<number, Hex>([[0, NO_PREVIOUS]]);
  readonly #recent = new RecentLeaves();
  /** `prev` of lines whose predecessor has not been read yet. */
  readonly #pendingPrevs = new Map<number, Hex>();
  /** Ranges of missing ids: a single line may skip a million ids. */
  #gaps: IdRange[] = [];
  #head = { eventId: 0, leaf: NO_PREVIOUS };
  /** The head before the latest unreadable lines, which may turn out to have been inserted. */
  #headBeforeUnreadable: { readonly eventId: number; readonly leaf: Hex } | undefined;
  #last: { readonly eventId: number; readonly ts: string } | undefined;
  /** Leaves that override those of the lines. */
  readonly #given: Leaves;
  /** For missing, unreadable and altered lines: `prev` of the line after each. */
  readonly trueLeaves = new Map<number, Hex>();

  constructor(findings: Findings, given: Leaves = new Map()) {
    this.#findings = findings;
    this.#given = given;
  }

  /** The last event in order; event 0 before the first. */
  get head(): { readonly eventId: number; readonly leaf: Hex; readonly at: Millis } {
    return { ...this.#head, at: instantOf(this.#last?.ts ?? '') };
  }

  /** Returns undefined for an event that was not read, follows a gap, or is more than a million lines back. */
  leafAt(eventId: number): Uint8Array | undefined {
    return this.#recent.get(eventId);
  }

  get due(): number {
    return this.#head.eventId + 1;
  }

  /** Counts an unreadable line as the next event; returns the event's id. */
  placeUnreadable(bytes: Uint8Array): number {
    this.#headBeforeUnreadable ??= this.#head;
    const given = this.#given.get(this.due);
    this.#advance(this.due, given === undefined ? leafOf(bytes) : fromHex(given));
    return this.#head.eventId;
  }

  place(event: ChamberEvent, bytes: Uint8Array): Position {
    const unreadEventId = this.#resolveUnreadable(event);
    const { due } = this;
    const { eventId, kind } = this.#number(event, due);
    const given = this.#given.get(eventId);
    const leaf = given === undefined ? leafOf(bytes, event) : fromHex(given);
    if (kind === 'repeat') return { eventId, kind, leaf };
    const alteredEventId = this.#compareHashes(eventId, event.prev, toHex(leaf)) ? undefined : eventId - 1;
    if (kind === 'next') {
      const { ts } = event;
      const last = this.#last ?? { eventId, ts };
      this.#last = { eventId, ts };
      const problem = ts < last.ts && `event ${eventId} (${ts}) is earlier than event ${last.eventId} (${last.ts})`;
      this.#findings.judge('time', [last.eventId, eventId], problem);
      this.#advance(eventId, leaf);
    }
    return { eventId, kind, leaf, lostEventId: unreadEventId ?? (eventId > due ? due : undefined), alteredEventId };
  }

  conclude(): void {
    for (const [from, to] of this.#gaps) {
      const missing = from === to ? `event ${from} is missing` : `events ${from} to ${to} are missing`;
      const count = to - from + 1;
      const ids = count > IDS_NAMED_MAX ? [from, to] : Array.from({ length: count }, (_, index) => from + index);
      this.#findings.judge('order', ids, missing);
    }
  }

  /**
   * Returns the first unreadable event; undefined if this event continues the line before the unreadable ones, which were then inserted.
   */
  #resolveUnreadable({ eventId, prev }: ChamberEvent): number | undefined {
    const before = this.#headBeforeUnreadable;
    this.#headBeforeUnreadable = undefined;
    if (before === undefined) return undefined;
    const isInserted = prev === before.leaf && eventId === before.eventId + 1;
    if (isInserted) this.#head = before;
    return isInserted ? undefined : before.eventId + 1;
  }

  /** A line with a lower id than expected is late if it fills a gap, and a repetition otherwise. */
  #number({ eventId, prev }: ChamberEvent, due: number): Pick<Position, 'eventId' | 'kind'> {
    if (eventId !== due && prev === this.#head.leaf) {
      this.#findings.judge('order', [due], `event ${due} is numbered ${eventId}`);
      return { eventId: due, kind: 'next' };
    }
    if (eventId >= due) {
      if (eventId > due) this.#gaps.push([due, eventId - 1]);
      this.#findings.judge('order', [eventId]);
      return { eventId, kind: 'next' };
    }
    const gap = this.#gaps.find(([from, to]) => from <= eventId && eventId <= to);
    if (gap === undefined) {
      this.#findings.judge('order', [eventId], `event ${eventId} occurs more than once`);
      return { eventId, kind: 'repeat' };
    }
    const [from, to] = gap;
    this.#gaps = this.#gaps.filter((other) => other !== gap);
    if (from < eventId) this.#gaps.push([from, eventId - 1]);
    if (eventId < to) this.#gaps.push([eventId + 1, to]);
    const problem = `event ${eventId} comes after event ${due - 1}`;
    this.#findings.judge('order', [eventId, due - 1], problem, { code: 'late' });
    return { eventId, kind: 'late' };
  }

  /** Compares `prev` with the previous event's leaf, and the leaf with the next event's `prev`, if they were read. */
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
    if (before !== prev && this.trueLeaves.size < TRUE_LEAVES_MAX) this.trueLeaves.set(eventId - 1, prev);
    return before === undefined || before === prev;
  }

  #checkLink(eventId: number, holds: boolean): void {
    const problem =
      eventId === 1
        ? 'event 1 refers to a previous line: its prev must be zeros'
        : `event ${eventId} does not contain the hash of event ${eventId - 1}: one of the two was altered`;
    this.#findings.judge('chain', eventId === 1 ? [1] : [eventId - 1, eventId], !holds && problem);
  }

  #advance(eventId: number, leaf: Uint8Array): void {
    this.#head = { eventId, leaf: toHex(leaf) };
    this.#leaves.set(eventId, this.#head.leaf);
    this.#recent.add(eventId, leaf);
  }
}

// Finds the duties of agents with callbacks, at no cost to moves in other chambers. Invariants:
//
// - Duties follow from the derived tables and the clock, like GET /me/todo. All state can be rebuilt.
// - A chamber is read again after each event and whenever the clock changes its duties. It is followed before it is read, and a failed
//   read is repeated.
// - The next search finds a chamber that an agent with a callback has joined, even through another node.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Duty, dutyOf, seatsDue } from '../../projections/todo.ts';
import type { Forum } from '../forum/forum.ts';
import type { ChamberWithTurns, MemberSelector } from '../log/callbacks.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface FoundDuty extends Duty {
  readonly did: string;
  readonly chamberId: number;
}

export interface DutyFinderOptions {
  readonly forum: Forum;
  /** Returns false if there is no room for the duty, which is then found again. */
  readonly onDuty: (duty: FoundDuty) => boolean;
}

const SEARCH_MS_MIN = 5_000;
/** The pause after a search is this multiple of the search's duration. */
const SEARCH_SHARE = 20;
const MEMBERSHIPS_PER_PAGE = 500;
const CHAMBERS_PER_READ = 200;
const NO_ROOM_MS = 5_000;
/** Further chambers are not followed, but read at each search. */
const FOLLOWED_MAX = 50_000;

interface Followed {
  readonly unfollow: () => void;
  /** When the clock next changes the chamber's duties; -Infinity before the first read. */
  changesAt: Millis;
  /** The number of the last search that found the chamber. */
  search: number;
}

export class DutyFinder {
  readonly #options: DutyFinderOptions;
  readonly #followed = new Map<number, Followed>();
  /** Chambers to read in the next round. */
  readonly #changed = new Set<number>();
  #searches = 0;
  #searchAt = Number.NEGATIVE_INFINITY;
  #agents = 0;

  constructor(options: DutyFinderOptions) {
    this.#options = options;
  }

  /** The number of agents with a callback and an open chamber, as of the last search. */
  get agents(): number {
    return this.#agents;
  }

  /** Finds new duties since the last round. Rejects with the error of a failed read, which the next round repeats. */
  async round(): Promise<void> {
    if (performance.now() >= this.#searchAt) await this.#search();
    const now = this.#options.forum.now();
    for (const [chamberId, { changesAt }] of this.#followed) if (changesAt <= now) this.#changed.add(chamberId);
    const chamberIds = [...this.#changed];
    for (let at = 0; at < chamberIds.length; at += CHAMBERS_PER_READ) {
      await this.#read(chamberIds.slice(at, at + CHAMBERS_PER_READ));
      await nextTurn();
    }
  }

  /** Makes the next round search. */
  searchSoon(): void {
    this.#searchAt = Number.NEGATIVE_INFINITY;
  }

  forget(): void {
    for (const { unfollow } of this.#followed.values()) unfollow();
    this.#followed.clear();
    this.#changed.clear();
    this.searchSoon();
  }

  async #search(): Promise<void> {
    const startedAt = performance.now();
    const search = ++this.#searches;
    const { callbacks } = this.#options.forum.store;
    let agents = 0;
    let after = { did: '', chamberId: 0 };
    for (;;) {
      const page = await callbacks.listMemberships(after, MEMBERSHIPS_PER_PAGE);
      for (const found of page) {
        if (found.did !== after.did) agents++;
        this.#follow(found.chamberId, search);
        after = found;
      }
      if (page.length < MEMBERSHIPS_PER_PAGE) break;
      await nextTurn();
    }
    for (const [chamberId, followed] of this.#followed) {
      if (followed.search === search) continue;
      followed.unfollow();
      this.#followed.delete(chamberId);
    }
    this.#agents = agents;
    const endedAt = performance.now();
    this.#searchAt = endedAt + Math.max(SEARCH_MS_MIN, SEARCH_SHARE * (endedAt - startedAt));
  }

  #follow(chamberId: number, search: number): void {
    const followed = this.#followed.get(chamberId);
    if (followed !== undefined) followed.search = search;
    else if (this.#followed.size >= FOLLOWED_MAX) this.#changed.add(chamberId);
    else {
      const unfollow = this.#options.forum.follow(chamberId, () => this.#changed.add(chamberId));
      this.#followed.set(chamberId, { unfollow, changesAt: Number.NEGATIVE_INFINITY, search });
    }
  }

  async #read(chamberIds: readonly number[]): Promise<void> {
    for (const chamberId of chamberIds) this.#changed.delete(chamberId);
    try {
      await this.#find(chamberIds);
    } catch (error) {
      for (const chamberId of chamberIds) this.#changed.add(chamberId);
      throw error;
    }
  }

  async #find(chamberIds: readonly number[]): Promise<void> {
    const { forum, onDuty } = this.#options;
    const { callbacks } = forum.store;
    const now = forum.now();
    const played = new Map<number, ChamberWithTurns>();
    const due: MemberSelector[] = [];
    for (const each of await callbacks.listChambersWithTurns(chamberIds)) {
      const { chamberId } = each.chamber;
      played.set(chamberId, each);
      const { seats, changesAt } = seatsDue(each, now);
      const followed = this.#followed.get(chamberId);
      if (followed !== undefined) followed.changesAt = changesAt;
      due.push(...seats.map((turnOrder) => ({ chamberId, turnOrder })));
    }
    if (due.length === 0) return;
    for (const { chamberId, member } of await callbacks.listMembers(due)) {
      const chamber = played.get(chamberId);
      const duty = chamber && dutyOf({ ...chamber, member }, now);
      if (!duty) continue;
      const hasRoom = onDuty({ ...duty, did: member.did, chamberId });
      const followed = this.#followed.get(chamberId);
      // If there is no room, the chamber is read again later; if it is not followed, by the next search.
      if (!hasRoom && followed !== undefined) followed.changesAt = Math.min(followed.changesAt, now + NO_ROOM_MS);
    }
  }
}

// What agents have to do in their chambers, for GET /me/todo: most urgent first, each list with a version of its own.
import { hash } from 'node:crypto';
import { byUrgency, type Todo, type TodoView, todoOf, todoView } from '../../projections/todo.ts';
import type { ReadModel } from '../log/read-model.ts';
import type { ChamberLimits } from '../moves/move.ts';
import type { Millis } from '../vocabulary/values.ts';

/** An agent's open chambers that are looked at: the newest ones. */
const MEMBERSHIPS_MAX = 1_000;
const VERSION_CHARS = 22;

export interface TodoList {
  /** When it was made. */
  readonly now: Millis;
  readonly items: readonly Todo[];
  /**
   * Differs from that of every other list. It is made of the list's content, so that all nodes agree on it, before and after
   * restarts.
   */
  readonly version: string;
  /** Until then only an event can change the list; Infinity if nothing else can. */
  readonly validUntil: Millis;
}

export class TodoLists {
  readonly #lists: ReadModel;
  readonly #limits: ChamberLimits;
  readonly #isRetired: (did: string) => Promise<boolean>;

  constructor(lists: ReadModel, limits: ChamberLimits, isRetired: (did: string) => Promise<boolean>) {
    this.#lists = lists;
    this.#limits = limits;
    this.#isRetired = isRetired;
  }

  /** The chambers of the agent that are not committed. */
  async of(did: string, now: Millis): Promise<TodoList> {
    const memberships = await this.#lists.listMemberships(did, MEMBERSHIPS_MAX);
    const isRetired = await this.#isRetired(did);
    const { membersMax } = this.#limits;
    const items = memberships.map((membership) => todoOf(membership, { now, membersMax, isRetired })).sort(byUrgency);
    const validUntil = Math.min(...items.map(({ changesAt }) => changesAt));
    return { now, items, version: versionOf(items), validUntil };
  }

  /** The first items of a list, as they are shown. */
  async views({ items }: TodoList, limit: number): Promise<readonly TodoView[]> {
    const shown = items.slice(0, limit);
    const holders = await this.#lists.listMembersAt(
      shown.map(({ membership, holderTurnOrder }) => [membership.chamber.chamberId, holderTurnOrder]),
    );
    return shown.map((item, index) => todoView(item, holders[index] ?? null));
  }
}

/** Each event of a chamber raises its lastEventId; the rest is what the clock, or the agent's retirement, changes. */
function versionOf(items: readonly Todo[]): string {
  const parts = items.map(({ membership: { chamber, lastEventId }, phase, must, turnEndsAt, isClosed, isRetired }) => {
    return `${chamber.chamberId} ${lastEventId} ${phase} ${must} ${turnEndsAt} ${isClosed} ${isRetired}`;
  });
  return hash('sha256', parts.join(), 'base64url').slice(0, VERSION_CHARS);
}

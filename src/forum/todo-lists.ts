// What agents have to do in their chambers, for GET /me/todo: most urgent first, as JSON. The text of each item is kept until its
// chamber changes or its next deadline passes, because to make 200 of them takes longer than all else of a request.
import { byUrgency, type Membership, nextDeadline, type Todo, todoOf, todoView } from '../../projections/todo.ts';
import type { ForumLog } from '../log/log.ts';
import type { ChamberLimits } from '../moves/move.ts';
import type { Millis } from '../vocabulary/values.ts';

/** An agent's open chambers that are looked at: the newest ones. */
const MEMBERSHIPS_MAX = 1_000;

export interface TodoList {
  readonly chamberIds: readonly number[];
  /** A JSON array of TodoView. */
  readonly todo: string;
  /** Whether there are more than asked for. */
  readonly isCut: boolean;
  /** The first of these chambers' deadlines that is ahead; Infinity without one. */
  readonly nextDeadline: Millis;
}

interface Item {
  readonly todo: Todo;
  /** The next deadline that is ahead: until then only an event can change it. Infinity without one. */
  readonly until: Millis;
  /** When it is listed for the first time. */
  text: string | undefined;
}

export class TodoLists {
  readonly #log: ForumLog;
  readonly #limits: ChamberLimits;
  /** A log returns the same object for a membership as long as neither the chamber nor the member has changed, or a new one. */
  readonly #items = new WeakMap<Membership, Item>();

  constructor(log: ForumLog, limits: ChamberLimits) {
    this.#log = log;
    this.#limits = limits;
  }

  /** The chambers of the agent that are not committed. `now` must never fall. */
  async of(did: string, { now, limit }: { readonly now: Millis; readonly limit: number }): Promise<TodoList> {
    const memberships = await this.#log.listMemberships(did, MEMBERSHIPS_MAX + 1);
    const items = memberships
      .map((each) => this.#itemOf(each, now))
      .sort((one, other) => byUrgency(one.todo, other.todo));
    const listed = items.slice(0, limit);
    await this.#write(listed.filter(({ text }) => text === undefined));
    return {
      chamberIds: listed.map(({ todo }) => todo.membership.chamber.chamberId),
      todo: `[${listed.map(({ text }) => text).join(',')}]`,
      isCut: items.length > limit,
      nextDeadline: Math.min(...listed.map(({ until }) => until)),
    };
  }

  #itemOf(membership: Membership, now: Millis): Item {
    const known = this.#items.get(membership);
    if (known !== undefined && now < known.until) return known;
    const todo = todoOf(membership, { now, membersMax: this.#limits.membersMax });
    const end = nextDeadline(todo);
    const item = { todo, until: end > now ? end : Number.POSITIVE_INFINITY, text: undefined };
    this.#items.set(membership, item);
    return item;
  }

  async #write(items: readonly Item[]): Promise<void> {
    if (items.length === 0) return;
    const holders = await this.#log.listMembersAt(
      items.map(({ todo }) => [todo.membership.chamber.chamberId, todo.holderTurnOrder]),
    );
    for (const [index, item] of items.entries())
      item.text = JSON.stringify(todoView(item.todo, holders[index] ?? null));
  }
}

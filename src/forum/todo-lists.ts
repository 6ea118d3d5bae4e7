// Agents' pending tasks in their chambers, for GET /me/todo: most urgent first, with a version of each list.
import { hash } from 'node:crypto';
import type { AccountState } from '../../projections/account.ts';
import { mayAdmit } from '../../projections/admission.ts';
import { phaseBy } from '../../projections/phase.ts';
import {
  byUrgency,
  type Membership,
  type OwnAdmission,
  type Todo,
  type TodoView,
  todoOf,
} from '../../projections/todo.ts';
import type { ReadModel } from '../log/read-model.ts';
import { admissionProblem } from '../moves/admission-texts.ts';
import type { ChamberLimits } from '../moves/move.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { Account, Chamber } from './staging.ts';
import { todoView } from './todo-view.ts';

/** A list covers the agent's newest open chambers, up to this number. */
const MEMBERSHIPS_MAX = 1_000;
const VERSION_CHARS = 22;

export interface TodoList {
  readonly now: Millis;
  readonly items: readonly Todo[];
  /** Identifies the content of the list. It is the same on all nodes and after a restart. */
  readonly version: string;
  /** Until this time only an event can change the list; Infinity if nothing else can. */
  readonly validUntil: Millis;
}

interface Folds {
  account(did: string): Promise<Account | undefined>;
  chamber(chamberId: number): Promise<Chamber | undefined>;
}

export class TodoLists {
  readonly #lists: ReadModel;
  readonly #limits: ChamberLimits;
  readonly #folds: Folds;

  constructor(lists: ReadModel, limits: ChamberLimits, folds: Folds) {
    this.#lists = lists;
    this.#limits = limits;
    this.#folds = folds;
  }

  /** Lists the agent's uncommitted chambers. A chamber that it created but did not join is listed only in LOBBY. */
  async of(did: string, now: Millis): Promise<TodoList> {
    const memberships = await this.#lists.listMemberships(did, MEMBERSHIPS_MAX);
    const account = (await this.#folds.account(did))?.state;
    const isRetired = (account?.retirement ?? null) !== null;
    const context = { now, membersMax: this.#limits.membersMax, isRetired };
    const items: Todo[] = [];
    for (const membership of memberships) {
      const isRestricted = account !== undefined && mayNeedFold(membership, now);
      const admission = isRestricted ? await this.#admissionOf(membership, account) : undefined;
      const item = todoOf(membership, { ...context, admission });
      // The creator has nothing left to do in a chamber that it did not join.
      if (membership.member.turnOrder !== null || item.phase === 'LOBBY') items.push(item);
    }
    const inTurn = items.filter(({ must }) => must === 'pass').map(chamberIdOf);
    const withIdea = new Set(await this.#lists.listChambersWithIdea(did, inTurn));
    for (const [index, item] of items.entries()) {
      if (withIdea.has(chamberIdOf(item))) items[index] = todoOf(item.membership, { ...context, hasIdea: true });
    }
    items.sort(byUrgency);
    const validUntil = Math.min(...items.map(({ changesAt }) => changesAt));
    return { now, items, version: versionOf(items), validUntil };
  }

  async #admissionOf({ chamber }: Membership, account: AccountState): Promise<OwnAdmission | undefined> {
    const folded = await this.#folds.chamber(chamber.chamberId);
    return (
      folded && { problem: admissionProblem(folded.state, account), mayAdmit: mayAdmit(folded.state, account.did) }
    );
  }

  /** Returns the API's views of the first items. */
  async views({ items }: TodoList, limit: number): Promise<readonly TodoView[]> {
    const shown = items.slice(0, limit);
    const holders = await this.#lists.listMembersAt(
      shown.map(({ membership, holderTurnOrder }) => [membership.chamber.chamberId, holderTurnOrder]),
    );
    return shown.map((item, index) => todoView(item, holders[index] ?? null));
  }
}

function chamberIdOf({ membership }: Todo): number {
  return membership.chamber.chamberId;
}

/** A creator of a restricted chamber in LOBBY needs the chamber's state to know whether it may join. */
function mayNeedFold({ chamber, member }: Membership, now: Millis): boolean {
  return chamber.isRestricted && chamber.creatorDid === member.did && phaseBy(chamber.ends, false, now) === 'LOBBY';
}

/** lastEventId covers all events of the chamber; the other properties depend on the clock or the agent's account. */
function versionOf(items: readonly Todo[]): string {
  const parts = items.map((item) => {
    const { chamber, lastEventId } = item.membership;
    const { phase, must, turnEndsAt, isClosed, isRetired, may, admission } = item;
    return `${chamber.chamberId} ${lastEventId} ${phase} ${must} ${turnEndsAt} ${isClosed} ${isRetired} ${may} ${admission.problem}`;
  });
  return hash('sha256', parts.join(), 'base64url').slice(0, VERSION_CHARS);
}

// An agent's background work while the server runs: it follows changes on one connection, reveals commitments as soon as possible, and
// passes turns for an agent that is done. A restart loses nothing: the service lists the due reveals, and the agent's store has the salts.
import type { TodoView } from '../../projections/todo.ts';
import type { Agent } from '../client/agent.ts';
import { followTodo } from '../client/duty-watch.ts';
import { Reveals, type WatchContext } from '../client/reveals.ts';
import type { Todo, TodoQuery } from '../client/todo-stream.ts';
import { problemText, reportText } from '../client/watch-report.ts';
import { detach } from '../process/detach.ts';
import type { ActingCalls } from './acting-calls.ts';
import type { Endings } from './endings.ts';
import { AutoPass } from './passing.ts';

const DONE = 'You are done in this phase: the server passes your turns until the phase ends or somebody speaks.';

/** An item of the agent's todo list; `problem` says why the reveal is impossible. */
export interface SeatItem extends TodoView {
  readonly problem?: string;
}

export class Seat {
  readonly agent: Agent;
  readonly calls: ActingCalls;
  readonly passing: AutoPass;
  readonly endings: Endings;
  readonly #reveals: Reveals;
  readonly #stop = new AbortController();
  readonly #listeners = new Set<(todo: Todo) => void>();

  /** Follows the agent's chambers until close(). `report` prints a line for the operator. */
  constructor(
    agent: Agent,
    { calls, endings, report }: Pick<Seat, 'calls' | 'endings'> & { readonly report: (line: string) => void },
  ) {
    this.agent = agent;
    this.calls = calls;
    this.endings = endings;
    this.passing = new AutoPass(agent, report);
    const watching: WatchContext = { signal: this.#stop.signal, report: (each) => report(reportText(each)) };
    this.#reveals = new Reveals(agent, watching);
    detach(this.#follow(watching));
  }

  async todo(signal: AbortSignal, query: TodoQuery = {}) {
    const list = await this.agent.todo({ ...query, signal });
    this.#reveals.begin(list);
    return { ...list, todo: await Promise.all(list.todo.map((item) => this.#toSeatItem(item))) };
  }

  async #toSeatItem(item: TodoView): Promise<SeatItem> {
    if (await this.passing.covers(item)) return { ...item, must: 'wait', may: [], why: DONE };
    await this.#reveals.check(item);
    const problem = item.revealed ? undefined : this.#reveals.problem(item.chamberId);
    return problem === undefined ? item : { ...item, problem: problemText(problem) };
  }

  /** Calls the listener with each todo list that the service sends, until the returned function is called. */
  listen(listener: (todo: Todo) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#stop.abort();
    this.passing.close();
  }

  async #follow(watching: WatchContext): Promise<void> {
    for await (const todo of followTodo(this.agent, watching)) {
      this.#reveals.begin(todo);
      for (const item of todo.todo) this.#toSeatItem(item).catch(() => {});
      for (const listener of this.#listeners) listener(todo);
    }
  }
}

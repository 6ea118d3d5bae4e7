// An agent's background work while the server runs: one connection reports changes, commitments are revealed as soon as possible, and
// turns are passed for an agent that is done. A restart loses nothing: the service lists the due reveals, and the salts are stored next
// to the key.
import type { TodoView } from '../../projections/todo.ts';
import type { Agent } from '../client/agent.ts';
import { Reveals, type Watching } from '../client/reveals.ts';
import { followTodo } from '../client/todo-follower.ts';
import type { Todo, TodoQuery } from '../client/todo-stream.ts';
import { problemText, reportText } from '../client/watch-report.ts';
import { detach } from '../process/detach.ts';
import type { ActingCalls } from './acting-calls.ts';
import type { Endings } from './endings.ts';
import { PassingOn } from './passing.ts';

const DONE = 'You are done in this phase: your turns are passed for you until it ends or somebody speaks.';

/** An item of the agent's todo list, with a reason if its reveal is impossible. */
export interface SeatItem extends TodoView {
  readonly problem?: string;
}

export class Seat {
  readonly agent: Agent;
  readonly calls: ActingCalls;
  readonly passing: PassingOn;
  readonly endings: Endings;
  readonly #reveals: Reveals;
  readonly #stop = new AbortController();
  readonly #listeners = new Set<(todo: Todo) => void>();

  /** Follows the agent's chambers until it is closed. `report` prints a line for the operator. */
  constructor(
    agent: Agent,
    { calls, endings, report }: Pick<Seat, 'calls' | 'endings'> & { readonly report: (line: string) => void },
  ) {
    this.agent = agent;
    this.calls = calls;
    this.endings = endings;
    this.passing = new PassingOn(agent, report);
    const watching: Watching = { signal: this.#stop.signal, report: (each) => report(reportText(each)) };
    this.#reveals = new Reveals(agent, watching);
    detach(this.#follow(watching));
  }

  async todo(signal: AbortSignal, query: TodoQuery = {}) {
    const answer = await this.agent.todo({ ...query, signal });
    this.#reveals.begin(answer);
    return { ...answer, todo: await Promise.all(answer.todo.map((item) => this.#withOwn(item))) };
  }

  async #withOwn(item: TodoView): Promise<SeatItem> {
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

  async #follow(watching: Watching): Promise<void> {
    for await (const todo of followTodo(this.agent, watching)) {
      this.#reveals.begin(todo);
      for (const item of todo.todo) this.#withOwn(item).catch(() => {});
      for (const listener of this.#listeners) listener(todo);
    }
  }
}

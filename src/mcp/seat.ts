// An agent's seat while the server runs: one connection reports changes, commitments are revealed as soon as possible, and turns are passed
// for an agent that is done. A restart loses nothing: the service lists the reveals that are due, and the salts are next to the key.
import type { TodoView } from '../../projections/todo.ts';
import type { Agent } from '../client/agent.ts';
import { ClientError } from '../client/error.ts';
import type { Todo, TodoQuery } from '../client/todo-stream.ts';
import { detach } from '../process/detach.ts';
import { backoffMillis, pause } from '../reading/waiting.ts';
import type { ActingCalls } from './acting-calls.ts';
import type { Endings } from './endings.ts';
import { PassingOn } from './passing.ts';

/** Due and rejected reveals: an untrusted service could list any number of chambers. */
const REVEALS_MAX = 1_000;

const DONE = 'You are done in this phase: your turns are passed for you until it ends or somebody speaks.';

/** An item of the agent's todo, with the reason if its reveal can't be made. */
export interface SeatItem extends TodoView {
  readonly problem?: string;
}

export class Seat {
  readonly agent: Agent;
  readonly calls: ActingCalls;
  readonly passing: PassingOn;
  readonly endings: Endings;
  readonly #report: (line: string) => void;
  readonly #stop = new AbortController();
  readonly #listeners = new Set<(todo: Todo) => void>();
  readonly #revealing = new Set<number>();
  readonly #problems = new Map<number, string>();
  /** Chambers whose openings were looked up. */
  readonly #checked = new Set<number>();
  /** Settles with the last started reveal: one response is read at a time. */
  #attempt: Promise<unknown> = Promise.resolve();

  /** Follows the agent's chambers until it is closed. `report` prints a line for the operator. */
  constructor(
    agent: Agent,
    { calls, endings, report }: Pick<Seat, 'calls' | 'endings'> & { readonly report: (line: string) => void },
  ) {
    this.agent = agent;
    this.calls = calls;
    this.endings = endings;
    this.passing = new PassingOn(agent, report);
    this.#report = report;
    detach(this.#follow());
  }

  async todo(signal: AbortSignal, query: TodoQuery = {}) {
    const answer = await this.agent.todo({ ...query, signal });
    this.#reveal(answer);
    return { ...answer, todo: await Promise.all(answer.todo.map((item) => this.#withOwn(item))) };
  }

  async #withOwn(item: TodoView): Promise<SeatItem> {
    if (await this.passing.covers(item)) return { ...item, must: 'wait', may: [], why: DONE };
    await this.#requireOpening(item);
    const problem = item.revealed ? undefined : this.#problems.get(item.chamberId);
    return problem === undefined ? item : { ...item, problem };
  }

  /** Reports a lost salt once, while it may still be found. */
  async #requireOpening({ chamberId, committed, revealed, phaseEndsAt }: TodoView): Promise<void> {
    if (!committed || revealed || this.#checked.has(chamberId) || this.#checked.size >= REVEALS_MAX) return;
    this.#checked.add(chamberId);
    try {
      await this.agent.requireRevealable(chamberId, { signal: this.#stop.signal });
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== 'CLIENT_ERR_COMMITMENT') {
        this.#checked.delete(chamberId);
        return;
      }
      const problem = problemOf(error, phaseEndsAt);
      this.#problems.set(chamberId, problem);
      this.#report(`chamber ${chamberId}: ${problem}`);
    }
  }

  /** Calls the listener with each todo that the service sends; returns a function that stops it. */
  listen(listener: (todo: Todo) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#stop.abort();
    this.passing.close();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    let reported = '';
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        for await (const todo of this.agent.todos({ signal })) {
          failures = 0;
          reported = '';
          this.#notify(todo);
        }
      } catch (error) {
        // The message may contain the time.
        const condition = error instanceof ClientError ? `${error.code} ${error.step}` : String(error);
        if (!signal.aborted && condition !== reported) this.#report(`the service is not followed: ${textOf(error)}`);
        reported = condition;
      }
      await pause(backoffMillis(failures), signal).catch(() => {});
    }
  }

  #notify(todo: Todo): void {
    this.#reveal(todo);
    for (const item of todo.todo) this.#withOwn(item).catch(() => {});
    for (const listener of this.#listeners) listener(todo);
  }

  #reveal({ todo }: Todo): void {
    for (const { chamberId, must, phaseEndsAt } of todo) {
      if (must !== 'reveal' || this.#revealing.has(chamberId) || this.#revealing.size >= REVEALS_MAX) continue;
      this.#revealing.add(chamberId);
      detach(this.#revealOne(chamberId, phaseEndsAt));
    }
  }

  /** Retries until the service has decided. This process does not retry a rejected reveal. */
  async #revealOne(chamberId: number, phaseEndsAt: TodoView['phaseEndsAt']): Promise<void> {
    const { signal } = this.#stop;
    for (let failures = 0; ; failures++) {
      try {
        await this.#inTurn(() => this.agent.reveal(chamberId, { signal }));
        this.#problems.delete(chamberId);
        this.#revealing.delete(chamberId);
        return this.#report(`revealed in chamber ${chamberId}`);
      } catch (error) {
        const isDone = error instanceof ClientError && error.code === 'FORUM_ERR_CONFLICT';
        if (signal.aborted || isDone) return;
        const problem = problemOf(error, phaseEndsAt);
        // Other errors are conditions of this machine that may pass, such as too many open files.
        const isFinal = error instanceof ClientError && !error.retryable;
        this.#problems.set(chamberId, problem);
        if (failures === 0) this.#report(`not revealed in chamber ${chamberId}: ${problem}`);
        if (isFinal) return;
        await pause(backoffMillis(failures), signal).catch(() => {});
      }
    }
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const attempt = this.#attempt.then(work);
    this.#attempt = attempt.catch(() => {});
    return attempt;
  }
}

function textOf(error: unknown): string {
  const { message, step } = error as Partial<ClientError>;
  return step === 'registration' ? `${message}; run chambers agent register` : String(message);
}

/** The reason why an allocation can't be revealed and, if its salt is lost, the remedy. */
function problemOf(error: unknown, phaseEndsAt: TodoView['phaseEndsAt']): string {
  if (!(error instanceof ClientError) || error.code !== 'CLIENT_ERR_COMMITMENT')
    return String((error as Error).message);
  return `${error.detail}. Tell the operator: copy the folder <key file>.commitments from where the allocation was committed, and restart this server, before the reveal ends (this phase ends at ${phaseEndsAt}). Without it the allocation does not count`;
}

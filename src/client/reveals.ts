// Reveals an agent's commitments in all its chambers as soon as commits are closed. A restart loses nothing: the service lists the due
// reveals, and the agent's store has the salts.
import type { TodoView } from '../../projections/todo.ts';
import { backoffMillis } from '../reading/waiting.ts';
import type { CallOptions, Service } from './call.ts';
import { ClientError } from './error.ts';
import type { FollowOptions, VerifiedLine } from './events.ts';
import type { Todo } from './todo-stream.ts';
import type { Report, RevealProblem } from './watch-report.ts';

/** The maximum number of due and rejected reveals, because an untrusted service could list any number of chambers. */
const REVEALS_MAX = 1_000;

/** The members of Agent that a watch calls. */
export interface WatchedAgent {
  readonly forum: {
    readonly service: Service;
    history(chamberId: number, options: FollowOptions): AsyncGenerator<VerifiedLine, void, undefined>;
  };
  todo(options: CallOptions): Promise<Todo>;
  todos(options: CallOptions): AsyncGenerator<Todo, void, undefined>;
  reveal(chamberId: number, options: CallOptions): Promise<unknown>;
  requireRevealable(chamberId: number, options: CallOptions): Promise<void>;
}

export interface WatchContext {
  readonly signal: AbortSignal;
  readonly report: Report;
}

export class Reveals {
  readonly #agent: WatchedAgent;
  readonly #watching: WatchContext;
  readonly #revealing = new Set<number>();
  readonly #problems = new Map<number, RevealProblem>();
  /** Chambers whose openings were looked up. */
  readonly #checked = new Set<number>();
  /** Settles with the last reveal that was started, so that only one response is read at a time. */
  #attempt: Promise<unknown> = Promise.resolve();

  constructor(agent: WatchedAgent, watching: WatchContext) {
    this.#agent = agent;
    this.#watching = watching;
  }

  /** Starts the due reveals without waiting for them. */
  begin({ todo }: Pick<Todo, 'todo'>): void {
    for (const { chamberId, must, phaseEndsAt } of todo) {
      if (must !== 'reveal' || this.#revealing.has(chamberId) || this.#revealing.size >= REVEALS_MAX) continue;
      this.#revealing.add(chamberId);
      this.#reveal(chamberId, phaseEndsAt).catch((error: unknown) => this.#fail({ chamberId, error, phaseEndsAt }));
    }
  }

  /** Reports a missing salt once, while there may still be time to find it. */
  async check({ chamberId, committed, revealed, phaseEndsAt }: TodoView): Promise<void> {
    if (!committed || revealed || this.#checked.has(chamberId) || this.#checked.size >= REVEALS_MAX) return;
    this.#checked.add(chamberId);
    const { signal, report } = this.#watching;
    try {
      await this.#agent.requireRevealable(chamberId, { signal });
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== 'CLIENT_ERR_COMMITMENT') {
        this.#checked.delete(chamberId);
        return;
      }
      const problem = { chamberId, error, phaseEndsAt };
      this.#problems.set(chamberId, problem);
      report({ type: 'unrevealable', ...problem });
    }
  }

  /** Returns why the reveal in this chamber failed; undefined if it did not. */
  problem(chamberId: number): RevealProblem | undefined {
    return this.#problems.get(chamberId);
  }

  /** Retries until the service has decided. A rejected reveal is not retried by this process. */
  async #reveal(chamberId: number, phaseEndsAt: TodoView['phaseEndsAt']): Promise<void> {
    const { signal, report } = this.#watching;
    const { local } = this.#agent.forum.service.clock;
    for (let failures = 0; ; failures++) {
      try {
        await this.#inTurn(() => this.#agent.reveal(chamberId, { signal }));
        this.#problems.delete(chamberId);
        this.#revealing.delete(chamberId);
        return report({ type: 'revealed', chamberId });
      } catch (error) {
        const isDone = error instanceof ClientError && error.code === 'FORUM_ERR_CONFLICT';
        if (signal.aborted || isDone) return;
        // Other errors come from this machine and may be temporary, such as too many open files.
        const isFinal = error instanceof ClientError && !error.retryable;
        const problem = { chamberId, error, phaseEndsAt };
        if (failures === 0) this.#fail(problem);
        else this.#problems.set(chamberId, problem);
        if (isFinal) return;
        await local.sleep(backoffMillis(failures), signal).catch(() => {});
      }
    }
  }

  #fail(problem: RevealProblem): void {
    this.#problems.set(problem.chamberId, problem);
    this.#watching.report({ type: 'not-revealed', ...problem });
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const attempt = this.#attempt.then(work);
    this.#attempt = attempt.catch(() => {});
    return attempt;
  }
}

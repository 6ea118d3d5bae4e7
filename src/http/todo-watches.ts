// Watches the lists of agents (GET /me/todo), each once for all requests that wait for it.
import type { Forum } from '../forum/forum.ts';
import type { TodoList } from '../forum/todo-lists.ts';
import { WatchedAgent, type Watcher } from './watched-agent.ts';

export class TodoWatches {
  readonly #forum: Forum;
  readonly #agents = new Map<string, WatchedAgent>();
  #isClosed = false;

  constructor(forum: Forum) {
    this.#forum = forum;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Ends every wait, including those that begin later. */
  close(): void {
    this.#isClosed = true;
    for (const agent of this.#agents.values()) agent.end();
  }

  /**
   * Yields the agent's list, read after this call, then again whenever the list may have changed; a slow reader gets only the newest.
   * Ends when the signal aborts or the watches are closed; throws the error of a failed read.
   */
  async *lists(did: string, signal: AbortSignal): AsyncGenerator<TodoList, void, undefined> {
    let newest: TodoList | undefined;
    let failure: { readonly error: unknown } | undefined;
    let isEnded = this.#isClosed || signal.aborted;
    let wake = () => {};
    const watcher: Watcher = {
      take: (list) => {
        newest = list;
        wake();
      },
      fail: (error) => {
        failure = { error };
        wake();
      },
      end: () => {
        isEnded = true;
        wake();
      },
    };
    signal.addEventListener('abort', watcher.end);
    const leave = this.#watch(did, watcher);
    try {
      while (!isEnded) {
        if (failure !== undefined) throw failure.error;
        const list = newest;
        newest = undefined;
        if (list !== undefined) yield list;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      leave();
    }
  }

  #watch(did: string, watcher: Watcher): () => void {
    let agent = this.#agents.get(did);
    if (agent === undefined) {
      agent = new WatchedAgent(this.#forum, did, () => this.#agents.delete(did));
      this.#agents.set(did, agent);
    }
    return agent.add(watcher);
  }
}

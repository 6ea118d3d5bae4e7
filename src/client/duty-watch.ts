// Watches for an agent that is not always there: reveals by itself, and hands over each duty that becomes due.
import { linkedSignal } from '../reading/linked-signal.ts';
import type { CallOptions, Service } from './call.ts';
import { Duties, type OnDue } from './duties.ts';
import { nullIfRetryable } from './error.ts';
import type { FollowOptions, VerifiedLine } from './events.ts';
import { type RevealingAgent, Reveals } from './reveals.ts';
import { type FollowedAgent, followTodo } from './todo-follower.ts';
import type { Todo } from './todo-stream.ts';
import { isGoodNews, type Report, reportText } from './watch-report.ts';

export interface WatchOptions extends CallOptions {
  /**
   * Called once for each duty that becomes due, for one at a time in each chamber. If it rejects, it is called again after 1, 5, 25, 125,
   * 125 … seconds while the duty is open. After a restart of the program it is called for each open duty.
   */
  readonly onDue: OnDue;
  /** Calls at once, 8 by default. */
  readonly atOnceMax?: number;
  /** Called with each reveal and each problem that ends nothing; problems go to the client's onWarning by default. */
  readonly onReport?: Report;
}

const AT_ONCE_MAX = 8;

interface WatchedAgent extends RevealingAgent, FollowedAgent {
  readonly forum: {
    readonly service: Service;
    history(chamberId: number, options: FollowOptions): AsyncGenerator<VerifiedLine, void, undefined>;
  };
  todo(options: CallOptions): Promise<Todo>;
}

/**
 * Runs until the signal aborts; then waits for the running calls and throws the signal's reason. Throws before if the service rejects the
 * first request, for instance because it does not know the agent; all other problems are reported and retried.
 */
export async function watchDuties(agent: WatchedAgent, options: WatchOptions): Promise<never> {
  const { onDue, atOnceMax = AT_ONCE_MAX } = options;
  const report = options.onReport ?? warningsOf(agent.forum.service);
  const outer = options.signal ?? new AbortController().signal;
  await agent.todo({ signal: outer }).catch(nullIfRetryable);
  const watch = linkedSignal(outer);
  const watching = { signal: watch.signal, report };
  const reveals = new Reveals(agent, watching);
  const duties = new Duties(agent.forum, { ...watching, onDue, atOnceMax });
  try {
    for await (const todo of followTodo(agent, watching)) {
      reveals.begin(todo);
      for (const item of todo.todo) reveals.check(item).catch(() => {});
      duties.offer(todo);
    }
  } finally {
    watch.abort();
    await duties.ended();
    watch.release();
  }
  throw outer.reason;
}

function warningsOf({ onWarning }: Service): Report {
  return (report) => {
    if (!isGoodNews(report)) onWarning(reportText(report));
  };
}

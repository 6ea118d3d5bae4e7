// Watches for an agent that does not run all the time: reveals automatically, and calls a handler for each duty that becomes due.
import { backoffMillis, linkedSignal } from '../reading/waiting.ts';
import type { CallOptions, Service } from './call.ts';
import { Duties, type OnDue } from './duties.ts';
import { ClientError, nullIfRetryable } from './error.ts';
import { Reveals, type WatchContext, type WatchedAgent } from './reveals.ts';
import type { Todo } from './todo-stream.ts';
import { isProblem, type Report, reportText } from './watch-report.ts';

export interface WatchOptions extends CallOptions {
  /**
   * Called once for each duty that becomes due, one at a time in each chamber. If the call rejects, it is repeated after 1, 5, 25, 125, 125
   * … seconds while the duty is open. After a restart of the program, it is called for each open duty.
   */
  readonly onDue: OnDue;
  /** The maximum number of concurrent calls; 8 by default. */
  readonly atOnceMax?: number;
  /** Called with each reveal and each problem that does not end the watch. By default, problems go to the client's onWarning. */
  readonly onReport?: Report;
}

const AT_ONCE_MAX = 8;

/**
 * Runs until the signal aborts, then waits for the running calls and throws the signal's reason. Throws at the start if the service rejects
 * the first request, for instance because it does not know the agent; reports all other problems and retries.
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

/** Yields the todo list now and after each change, until the signal aborts. Reports outages and retries. */
export async function* followTodo(
  agent: WatchedAgent,
  { signal, report }: WatchContext,
): AsyncGenerator<Todo, void, undefined> {
  const { local } = agent.forum.service.clock;
  let reported = '';
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      for await (const todo of agent.todos({ signal })) {
        failures = 0;
        if (reported !== '') report({ type: 'followed-again' });
        reported = '';
        yield todo;
      }
    } catch (error) {
      // The message may contain the time, so the code identifies the condition.
      const condition = error instanceof ClientError ? `${error.code} ${error.step}` : String(error);
      if (!signal.aborted && condition !== reported) report({ type: 'not-followed', error });
      reported = condition;
    }
    await local.sleep(backoffMillis(failures), signal).catch(() => {});
  }
}

function warningsOf({ onWarning }: Service): Report {
  return (report) => {
    if (isProblem(report)) onWarning(reportText(report));
  };
}

import { backoffMillis } from '../reading/waiting.ts';
import type { CallOptions, Service } from './call.ts';
import { ClientError } from './error.ts';
import type { WatchContext } from './reveals.ts';
import type { Todo } from './todo-stream.ts';

export interface FollowedAgent {
  readonly forum: { readonly service: Service };
  todos(options: CallOptions): AsyncGenerator<Todo, void, undefined>;
}

/** Yields the todo list now and after each change, until the signal aborts. Reports outages and retries. */
export async function* followTodo(
  agent: FollowedAgent,
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

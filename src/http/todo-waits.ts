// The two ways to wait at GET /me/todo: long polling and server-sent events.
import type { HttpBindings } from '@hono/node-server';
import { whenClosed } from '../connections/carrier.ts';
import { type EventSink, respondEvents } from '../connections/event-source.ts';
import type { TodoList } from '../forum/todo-lists.ts';
import type { ForumContext } from './context.ts';
import { CORS_HEADERS } from './response.ts';
import type { RouteContext } from './route.ts';

interface Waiting {
  readonly did: string;
  readonly since: string | undefined;
  readonly seconds: number;
}

/** The first list of another version; without `since` also the first list if anything is due. When the time is up, the current list. */
export async function changedList(
  { forum, todoWatches }: RouteContext,
  { env: { outgoing } }: ForumContext,
  { did, since, seconds }: Waiting,
): Promise<TodoList> {
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, seconds * 1000);
  if (outgoing !== undefined) whenClosed(outgoing, end);
  let known = since;
  try {
    for await (const list of todoWatches.lists(did, ending.signal)) {
      if (known === undefined && isDue(list)) return list;
      known ??= list.version;
      if (list.version !== known) return list;
    }
  } finally {
    clearTimeout(timer);
  }
  return forum.todoLists.of(did, forum.now());
}

/** Items that are due come first. */
function isDue({ items: [first] }: TodoList): boolean {
  return first !== undefined && first.must !== 'wait';
}

interface Following {
  readonly did: string;
  /** The JSON of a response. */
  readonly answer: (list: TodoList) => Promise<Buffer>;
}

export function streamLists(
  { liveness, todoWatches, waits }: RouteContext,
  c: ForumContext,
  { did, answer }: Following,
): Response {
  // Streams are served over sockets.
  const { incoming, outgoing } = c.env as HttpBindings;
  const send = async (sink: EventSink, signal: AbortSignal) => {
    let sent: string | undefined;
    for await (const list of todoWatches.lists(did, signal)) {
      if (list.version === sent) continue;
      sent = list.version;
      await sink.send(Buffer.from(`data: ${await answer(list)}\n\n`));
    }
  };
  const open = (sink: EventSink) => {
    const ending = new AbortController();
    send(sink, ending.signal).then(() => sink.end(), sink.fail);
    return () => ending.abort();
  };
  return respondEvents({ incoming, outgoing, liveness, quota: waits, caller: did, headers: CORS_HEADERS, open });
}

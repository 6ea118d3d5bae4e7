// The two ways to wait at GET /me/todo: long polling and server-sent events.
import type { HttpBindings } from '@hono/node-server';
import { whenClosed } from '../connections/carrier.ts';
import { type EventSink, respondEvents } from '../connections/event-source.ts';
import type { TodoList } from '../forum/todo-lists.ts';
import type { ForumContext } from './context.ts';
import { CORS_HEADERS } from './response.ts';
import type { RouteContext } from './route.ts';

interface LongPoll {
  readonly did: string;
  readonly since: string | undefined;
  readonly seconds: number;
}

/**
 * Resolves to the first list whose version differs from `since`. Without `since`, resolves to the first list if anything is due, otherwise
 * to the next version. After `seconds`, resolves to the current list.
 */
export async function changedList(
  { forum, todoWatches }: RouteContext,
  { env: { outgoing } }: ForumContext,
  { did, since, seconds }: LongPoll,
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

/** Relies on the order: items that are due come first. */
function isDue({ items: [first] }: TodoList): boolean {
  return first !== undefined && first.must !== 'wait';
}

interface ListStream {
  readonly did: string;
  /** Serialises a response. */
  readonly serialise: (list: TodoList) => Promise<Buffer>;
}

export function streamLists(
  { liveness, todoWatches, waits }: RouteContext,
  c: ForumContext,
  { did, serialise }: ListStream,
): Response {
  // Streams always have a socket.
  const { incoming, outgoing } = c.env as HttpBindings;
  const send = async (sink: EventSink, signal: AbortSignal) => {
    let sent: string | undefined;
    for await (const list of todoWatches.lists(did, signal)) {
      if (list.version === sent) continue;
      sent = list.version;
      await sink.send(Buffer.from(`data: ${await serialise(list)}\n\n`));
    }
  };
  const open = (sink: EventSink) => {
    const ending = new AbortController();
    send(sink, ending.signal).then(() => sink.end(), sink.fail);
    return () => ending.abort();
  };
  return respondEvents({ incoming, outgoing, liveness, quota: waits, caller: did, headers: CORS_HEADERS, open });
}

// Server-sent events (WHATWG HTML, 9.2): a response that stays open, is written as fast as its reader takes it, and is kept alive.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { whenClosed } from './carrier.ts';
import type { Liveness } from './liveness.ts';
import type { Quota } from './quota.ts';

const EVENT_SOURCE_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store',
} as const;

/** A comment without a blank line after it, which some readers would take for the end of an event. */
export function comment(text: string): Buffer {
  return Buffer.from(`: ${text}\n`);
}

const KEEP_ALIVE = comment('keep-alive');

export interface EventSink {
  /** Sends whole events, whether or not there is room. */
  readonly write: (events: Uint8Array) => void;
  /** Sends whole events. Resolves when the socket has room for more, or the reader is gone. */
  readonly send: (events: Uint8Array) => Promise<void>;
  /** Ends the stream, after these events. */
  readonly end: (last?: Uint8Array) => void;
  /** Aborts the connection, so that the reader resumes instead of taking the stream for complete. */
  readonly fail: (error: unknown) => void;
}

interface EventSourceOptions {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly liveness: Liveness;
  /** Counts the stream against its caller until the response closes. */
  readonly quota: Quota;
  readonly caller: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Starts the events; the returned function stops them, once the reader is gone. */
  readonly open: (sink: EventSink) => () => void;
}

/** Throws FORUM_ERR_RATE. */
export function respondEvents(options: EventSourceOptions): Response {
  const { incoming, outgoing, quota, caller, headers } = options;
  const init = { headers: { ...headers, ...EVENT_SOURCE_HEADERS } };
  quota.require(caller);
  // The stream of a HEAD would never be read or ended.
  if (incoming.method === 'HEAD') return new Response(null, init);
  whenClosed(outgoing, quota.hold(caller));
  return new Response(bodyOf(options), init);
}

function bodyOf({ incoming, outgoing, liveness, open }: EventSourceOptions): ReadableStream<Uint8Array> {
  let isEnded = false;
  // The socket has taken everything and asks for more.
  let isPulled = false;
  /** All that wait for room wait for the same: what each of them sent was written before. */
  let room: PromiseWithResolvers<void> | undefined;
  let stop = () => {};

  function start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const write = (events: Uint8Array) => {
      isPulled = false;
      if (!isEnded) controller.enqueue(events);
    };
    const finish = (act: () => void) => {
      if (!isEnded) act();
      isEnded = true;
    };
    stop = open({
      write,
      send: (events) => {
        write(events);
        // No room is reported any more.
        if (isEnded) return Promise.resolve();
        room ??= Promise.withResolvers<void>();
        return room.promise;
      },
      end: (last) =>
        finish(() => {
          if (last !== undefined) controller.enqueue(last);
          controller.close();
        }),
      fail: (error) => finish(() => controller.error(error)),
    });
    const ping = () => isPulled && write(KEEP_ALIVE);
    liveness.watch({ socket: incoming.socket, carrier: outgoing, answersPings: false, ping });
  }

  function pull(): void {
    isPulled = true;
    reportRoom();
  }

  function cancel(): void {
    isEnded = true;
    stop();
    reportRoom();
  }

  function reportRoom(): void {
    room?.resolve();
    room = undefined;
  }

  // The socket has a queue: a second one before it would only hold more for a stalled reader.
  return new ReadableStream<Uint8Array>({ start, pull, cancel }, { highWaterMark: 0 });
}

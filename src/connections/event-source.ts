// Server-sent events (WHATWG HTML, 9.2), with backpressure and keep-alive comments.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { whenClosed } from './carrier.ts';
import type { Liveness } from './liveness.ts';
import type { Quota } from './quota.ts';

const EVENT_SOURCE_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store',
} as const;

/** Encodes a comment, without a blank line after it, which some readers would treat as the end of an event. */
export function comment(text: string): Buffer {
  return Buffer.from(`: ${text}\n`);
}

const KEEP_ALIVE = comment('keep-alive');

export interface EventSink {
  /** Sends whole events without waiting for the reader. */
  readonly write: (events: Uint8Array) => void;
  /** Sends whole events. Resolves when the socket accepts more data, or the reader is gone. */
  readonly send: (events: Uint8Array) => Promise<void>;
  /** Ends the stream after these events. */
  readonly end: (last?: Uint8Array) => void;
  /** Aborts the connection, because after a regular end the reader would consider the stream complete. */
  readonly fail: (error: unknown) => void;
}

interface EventSourceOptions {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly liveness: Liveness;
  /** Counts the stream until the response closes. */
  readonly quota: Quota;
  readonly caller: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Starts the events; the returned function is called when the reader is gone. */
  readonly open: (sink: EventSink) => () => void;
}

/** Throws FORUM_ERR_RATE. */
export function respondEvents(options: EventSourceOptions): Response {
  const { incoming, outgoing, quota, caller, headers } = options;
  const init = { headers: { ...headers, ...EVENT_SOURCE_HEADERS } };
  quota.require(caller);
  // Nobody reads or ends the stream of a HEAD request.
  if (incoming.method === 'HEAD') return new Response(null, init);
  whenClosed(outgoing, quota.acquire(caller));
  return new Response(bodyOf(options), init);
}

function bodyOf({ incoming, outgoing, liveness, open }: EventSourceOptions): ReadableStream<Uint8Array> {
  let isEnded = false;
  /** Whether the socket has taken everything and asks for more. */
  let isPulled = false;
  /** Shared by all pending calls of `send`, whose events are already enqueued. */
  let drained: PromiseWithResolvers<void> | undefined;
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
        if (isEnded) return Promise.resolve();
        drained ??= Promise.withResolvers<void>();
        return drained.promise;
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
    resolveDrained();
  }

  function cancel(): void {
    isEnded = true;
    stop();
    resolveDrained();
  }

  function resolveDrained(): void {
    drained?.resolve();
    drained = undefined;
  }

  // The socket has a queue; a second one would only use more memory for a stalled reader.
  return new ReadableStream<Uint8Array>({ start, pull, cancel }, { highWaterMark: 0 });
}

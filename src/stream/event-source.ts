// Server-sent events (WHATWG HTML, 9.2): `id` is the cursor and `data` the line, so that a browser resumes by Last-Event-ID.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Liveness } from '../connections/liveness.ts';
import type { Page } from '../log/log.ts';
import { serverSentEventsOf } from './frames.ts';
import type { Consumer, EndReason, Subscription } from './subscription.ts';

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');
const OVER = Buffer.from(': the chamber is over\n\n');

interface EventSourceOptions {
  readonly subscribe: (consumer: Consumer) => Subscription;
  /** Exclusive: the eventId where the subscription starts; undefined for all chambers, whose ids are <chamberId>:<eventId>. */
  readonly after: number | undefined;
  readonly outgoing: ServerResponse;
  /** The response's. */
  readonly socket: Socket;
  readonly liveness: Liveness;
}

export function eventSource({
  subscribe,
  after,
  outgoing,
  socket,
  liveness,
}: EventSourceOptions): ReadableStream<Uint8Array> {
  let subscription: Subscription | undefined;
  let eventId = after;
  let isEnded = false;
  // The socket has taken everything and asks for more.
  let isPulled = false;
  let onRoom = () => {};

  function start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const send = (chunk: Uint8Array) => {
      isPulled = false;
      controller.enqueue(chunk);
    };
    const take = (page: Page) => {
      send(serverSentEventsOf(page, eventId));
      if (eventId !== undefined) eventId += page.count;
      return new Promise<void>((resolve) => {
        onRoom = resolve;
      });
    };
    const end = (reason: EndReason) => {
      // An error aborts the connection, so that the reader resumes instead of taking the stream for complete.
      if (isEnded) return;
      isEnded = true;
      if (reason === 'over') controller.enqueue(OVER);
      if (typeof reason === 'string') controller.close();
      else controller.error(reason.error);
    };
    subscription = subscribe({ take, end });
    const ping = () => isPulled && !isEnded && send(KEEP_ALIVE);
    liveness.watch({ socket, carrier: outgoing, answersPings: false, ping });
  }

  function pull(): void {
    isPulled = true;
    onRoom();
  }

  function cancel(): void {
    isEnded = true;
    subscription?.stop();
  }

  // The socket has a queue: a second one before it would only hold another page for a stalled reader.
  return new ReadableStream<Uint8Array>({ start, pull, cancel }, { highWaterMark: 0 });
}

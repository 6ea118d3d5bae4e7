// The stream's twins over plain HTTP: server-sent events (WHATWG HTML, 9.2) and pages of NDJSON, the same lines.
import { setMaxListeners } from 'node:events';
import type { Socket } from 'node:net';
import type { Forum } from '../forum/forum.ts';
import type { Page } from '../log/log.ts';
import { readPages } from '../log/pages.ts';
import { serverSentEventsOf } from './frames.ts';
import type { Liveness, Source } from './liveness.ts';
import type { Consumer, Tail } from './tail.ts';

export const EVENTS_LIMIT = { min: 1, max: 10_000 } as const;
export const EVENTS_LIMIT_DEFAULT = 1_000;
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');

export interface EventSourceOptions {
  /** Exclusive. */
  readonly after: number;
  /** That the answer goes out on. */
  readonly socket: Socket;
  readonly liveness: Liveness;
}

/**
 * `id` is the eventId and `data` the line, so that a browser resumes by Last-Event-ID. A reader to whom nothing gets
 * through, not even a keep-alive, is cut.
 */
export function eventSource(tail: Tail, options: EventSourceOptions): ReadableStream<Uint8Array> {
  let reader: Reader;
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        reader = new Reader(tail, controller, options);
        tail.follow(reader);
        if (options.socket.closed) reader.leave();
      },
      pull: () => reader.goOn(),
      cancel: () => reader.leave(),
    },
    NOTHING_AHEAD,
  );
}

/** The socket has a queue of its own: a second one before it would only hold a page more for who stands still. */
const NOTHING_AHEAD = { highWaterMark: 0 };

class Reader implements Consumer, Source {
  readonly socket: Socket;
  readonly #tail: Tail;
  readonly #controller: ReadableStreamDefaultController<Uint8Array>;
  readonly #unwatch: () => void;
  readonly #onClose = () => this.leave();
  #eventId: number;
  #hasLeft = false;
  /** The socket has taken everything and asks for more. */
  #isAsked = false;
  #onRoom: (() => void) | undefined;

  constructor(tail: Tail, controller: ReadableStreamDefaultController<Uint8Array>, options: EventSourceOptions) {
    const { after, socket, liveness } = options;
    this.socket = socket;
    this.#tail = tail;
    this.#eventId = after;
    this.#controller = controller;
    this.#unwatch = liveness.watchSource(this);
    // Liveness tells who is gone. An answer that waits for another before it on the connection is not told of its end.
    setMaxListeners(0, socket.setTimeout(0).once('close', this.#onClose));
  }

  take(page: Page): Promise<void> {
    this.#send(serverSentEventsOf(page, this.#eventId));
    this.#eventId += page.count;
    return new Promise((resolve) => {
      this.#onRoom = resolve;
    });
  }

  /** An error breaks the connection off, so that the reader resumes rather than takes the stream for ended. */
  end(error?: unknown): void {
    this.#unwatch();
    this.socket.off('close', this.#onClose);
    if (this.#hasLeft) return;
    if (error === undefined) this.#controller.close();
    else this.#controller.error(error);
  }

  goOn(): void {
    this.#isAsked = true;
    this.#onRoom?.();
  }

  leave(): void {
    this.#hasLeft = true;
    this.#tail.stop();
  }

  /** Behind a backlog it would only wait, and the backlog itself shows whether the reader is there. */
  keepAlive(): void {
    if (!this.#hasLeft && this.#isAsked) this.#send(KEEP_ALIVE);
  }

  #send(chunk: Uint8Array): void {
    this.#isAsked = false;
    this.#controller.enqueue(chunk);
  }
}

export interface EventRange {
  readonly chamberId: number;
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly until: number;
}

/** The stored lines of the range, each ended by a line break. */
export function eventLines(forum: Forum, { chamberId, after, until }: EventRange): ReadableStream<Uint8Array> {
  const pages = readPages(forum.log, { stream: chamberId, after, until });
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await pages.next();
      if (done) controller.close();
      else controller.enqueue(value.ndjson);
    },
    cancel: async () => {
      await pages.return(undefined);
    },
  });
}

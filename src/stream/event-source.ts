// The stream's twins over plain HTTP: server-sent events (WHATWG HTML, 9.2) and pages of NDJSON, the same lines.
import type { Forum } from '../forum/forum.ts';
import type { Page } from '../log/log.ts';
import { readPages } from '../log/pages.ts';
import type { Tail } from './tail.ts';

export const EVENTS_LIMIT = { min: 1, max: 10_000 } as const;
export const EVENTS_LIMIT_DEFAULT = 1_000;
const KEEP_ALIVE_MS = 30_000;
const SILENT_KEEP_ALIVES_MAX = 2;
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');

/**
 * `id` is the eventId and `data` the line, so that a browser resumes by Last-Event-ID. A reader that takes nothing for
 * two keep-alives is cut.
 */
export function eventSource(tail: Tail, after: number): ReadableStream<Uint8Array> {
  const pages = tail.pages();
  let eventId = after;
  let keepAlive: NodeJS.Timeout | undefined;
  let silentKeepAlives = 0;
  const end = () => {
    clearInterval(keepAlive);
    tail.stop();
  };
  return new ReadableStream<Uint8Array>({
    start: (controller) => {
      keepAlive = setInterval(() => {
        // Behind a backlog it would only wait, and the backlog itself shows whether the reader is there.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(KEEP_ALIVE);
        else if (++silentKeepAlives >= SILENT_KEEP_ALIVES_MAX) cut(controller, end);
      }, KEEP_ALIVE_MS);
    },
    pull: async (controller) => {
      silentKeepAlives = 0;
      const next = await pages.next().catch(() => undefined);
      if (next === undefined) return cut(controller, end);
      if (!next.done) {
        controller.enqueue(toServerSentEvents(next.value, eventId));
        eventId += next.value.count;
        return;
      }
      end();
      // Already closed where the reader has gone.
      if (controller.desiredSize !== null) controller.close();
    },
    cancel: end,
  });
}

/** The connection breaks off, so that the reader resumes rather than takes the stream for ended. */
function cut(controller: ReadableStreamDefaultController<Uint8Array>, end: () => void): void {
  end();
  controller.error(new Error('the stream was cut'));
}

function toServerSentEvents({ ndjson }: Page, after: number): Uint8Array {
  const lines = ndjson.toString().trimEnd().split('\n');
  return Buffer.from(lines.map((line, index) => `id: ${after + index + 1}\ndata: ${line}\n\n`).join(''));
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

// Sends a subscription's pages as server-sent events: `id` is the cursor and `data` the line, so browsers resume with Last-Event-ID.
import { comment, type EventSink } from '../connections/event-source.ts';
import { serverSentEventsOf } from './frames.ts';
import type { Annotated, Subscription } from './subscription.ts';

const OVER = comment('the chamber is over');

export interface LineSource {
  readonly subscribe: (consumer: Annotated) => Subscription;
  /** The eventId after which the subscription starts; undefined for all chambers, whose ids are <chamberId>:<eventId>. */
  readonly after: number | undefined;
}

/** Returns a function that stops the subscription. */
export function sendLines({ write, send, end, fail }: EventSink, { subscribe, after }: LineSource): () => void {
  let eventId = after;
  const subscription = subscribe({
    take: (page) => {
      const events = serverSentEventsOf(page, eventId);
      if (eventId !== undefined) eventId += page.count;
      return send(events);
    },
    note: (text) => write(Buffer.from(`event: note\ndata: ${text}\n\n`)),
    end: (reason) => {
      if (typeof reason !== 'string') fail(reason.error);
      else end(reason === 'over' ? OVER : undefined);
    },
  });
  return () => subscription.stop();
}

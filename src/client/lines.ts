// Follows a chamber's log for as long as the reader likes: connections come and go, the cursor stays.
import { type Cursor, follow, START, type VerifiedLine } from './chain.ts';
import { ClientError } from './error.ts';
import { exchange, type Service } from './exchange.ts';
import { openFeed } from './feed.ts';
import { backoffMillis, pause } from './pause.ts';
import type { CallOptions } from './requests.ts';

export type { VerifiedLine };

/** Where a reader keeps its place beyond its own life. */
export interface CursorStore {
  load(): Promise<Cursor | undefined>;
  save(cursor: Cursor): Promise<void>;
}

export interface FollowOptions extends CallOptions {
  /** The event to go on after: its id, or better its cursor, by which the next line is checked; 0 is everything. */
  readonly after?: number | Cursor;
  /**
   * Wins over `after` once it holds a place. A place is saved when the loop asks for the next event, so that one being
   * handled when the process dies comes again. Whoever must not see it twice keeps the cursor with what it writes.
   */
  readonly cursorStore?: CursorStore;
}

/**
 * Every line after the cursor, then live ones, in order, each once, whatever happens to the connection. Throws
 * CLIENT_ERR_CHAIN on a line that does not follow, a refusal (no such chamber), CLIENT_ERR_UNREACHABLE where the service
 * was never reached, and the signal's reason.
 */
export async function* lines(
  service: Service,
  chamberId: number,
  { signal = new AbortController().signal, after = 0, cursorStore }: FollowOptions,
): AsyncGenerator<VerifiedLine, void, undefined> {
  let cursor = (await cursorStore?.load()) ?? toCursor(after);
  let wasReached = false;
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    const feed = await openFeed(streamUrl(service, chamberId, cursor), signal);
    try {
      for await (const message of feed) {
        const line = follow(cursor, chamberId, message);
        cursor = { eventId: line.eventId, leaf: line.leaf };
        attempt = 0;
        yield line;
        await cursorStore?.save(cursor);
      }
    } finally {
      feed.close();
    }
    signal.throwIfAborted();
    wasReached ||= feed.wasOpen;
    if (!feed.wasOpen) await explain(service, chamberId, { cursor, wasReached, signal });
    await pause(backoffMillis(attempt), signal);
  }
}

const PAGE_LINES = 1_000;

/** Every line after the cursor up to the log's head, checked like a follower's. */
export async function* history(
  service: Service,
  chamberId: number,
  { signal, after = 0 }: Omit<FollowOptions, 'cursorStore'>,
): AsyncGenerator<VerifiedLine, void, undefined> {
  let cursor = toCursor(after);
  for (let isHead = false; !isHead; ) {
    const path = `/chambers/${chamberId}/events?after=${cursor.eventId}&limit=${PAGE_LINES}`;
    const ndjson = (await exchange(service, { method: 'GET', path, answer: 'text' }, signal)) as string;
    const page = ndjson.split('\n').slice(0, -1);
    for (const text of page) {
      const line = follow(cursor, chamberId, text);
      cursor = line;
      yield line;
    }
    isHead = page.length < PAGE_LINES;
  }
}

function toCursor(after: number | Cursor): Cursor {
  if (typeof after !== 'number') return after;
  return after === 0 ? START : { eventId: after, leaf: null };
}

function streamUrl({ baseUrl }: Service, chamberId: number, { eventId }: Cursor): string {
  return `${baseUrl.replace(/^http/, 'ws')}/chambers/${chamberId}/stream?after=${eventId}`;
}

interface Refused {
  readonly cursor: Cursor;
  readonly wasReached: boolean;
  readonly signal: AbortSignal;
}

/** Throws why a handshake was refused, which a WebSocket does not tell: the same question over HTTP gets the answer. */
async function explain(service: Service, chamberId: number, { cursor, wasReached, signal }: Refused): Promise<void> {
  const path = `/chambers/${chamberId}/events?after=${cursor.eventId}&limit=1`;
  try {
    await exchange(service, { method: 'GET', path, answer: 'text' }, signal);
  } catch (error) {
    if (!(wasReached && error instanceof ClientError && error.retryable)) throw error;
  }
}

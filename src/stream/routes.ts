// GET /chambers/:id/stream, GET /chambers/:id/events and GET /agents/:did/events (specification, Events), and GET /events.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import { isSettled } from '../../projections/listings.ts';
import { whenClosed } from '../connections/carrier.ts';
import { type EventSink, respondEvents } from '../connections/event-source.ts';
import type { Liveness } from '../connections/liveness.ts';
import type { Quota } from '../connections/quota.ts';
import { parseDid } from '../crypto/did-key.ts';
import type { Forum } from '../forum/forum.ts';
import { ALL_CHAMBERS, type Page } from '../log/log.ts';
import { readAllPages, readPages } from '../log/pages.ts';
import type { StreamId } from '../log/stream-id.ts';
import type { MainThreadMeter } from '../process/main-thread.ts';
import { accepts } from '../vocabulary/accept.ts';
import { EVENTS_LIMIT, IMMUTABLE_TEXTS } from '../vocabulary/endpoint.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';
import {
  parseCursor,
  parseId,
  parseInteger,
  parseSwitch,
  requireQuery,
  requireWithin,
} from '../vocabulary/parameters.ts';
import type { Millis } from '../vocabulary/values.ts';
import { type LineSource, sendLines } from './event-source.ts';
import { PhaseNotes } from './notes.ts';
import { type Allowance, type Annotated, type Consumer, Subscriptions } from './subscription.ts';
import { acceptWebSocket } from './websocket.ts';
import { WithheldNotes } from './withheld-notes.ts';

/** A response of at most this many lines does not wait behind readers of whole logs. */
const SHORT_RESPONSE_LINES = 100;

const NOT_A_STREAM =
  'the stream needs a WebSocket handshake over HTTP/1.1, or Accept: text/event-stream; pages are at /chambers/:id/events';

interface StreamOptions {
  readonly forum: Forum;
  readonly liveness: Liveness;
  /** Limits the open streams of each network. */
  readonly quota: Quota;
  /** The network that a request counts against. */
  readonly networkOf: (incoming: IncomingMessage) => string;
  /** Milliseconds until the network is within its budget of main-thread time. */
  readonly workWait: (network: string) => Millis;
  readonly meter: MainThreadMeter;
  /** Sent with every response. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Adds the routes and returns the subscriptions that they open. */
export function streamRoutes(
  app: Hono<{ Bindings: Partial<HttpBindings> }>,
  { forum, liveness, quota, networkOf, workWait, meter, headers }: StreamOptions,
): Subscriptions {
  const { log, withholding } = forum.store;
  const subscriptions = new Subscriptions({ log, withholding, follow: forum.follow.bind(forum) });
  const withheldNotes = new WithheldNotes(withholding);
  const { logId } = log;
  const logHeaders = { ...headers, 'Log-Id': logId };

  app.get('/chambers/:id/stream', async (c) => {
    const kind = kindOf(c);
    const { chamberId, lastEventId } = (await forum.findChamber(c.req.param('id'))).state;
    const hasNotes = parseSwitch('notes', c.req.query('notes'));
    const endEventId = endsWhenSettled(c) ? () => settledAt(forum, chamberId) : undefined;
    requireQuery(c.req.url, ['after', 'log', 'end', 'notes']);
    const after = readCursor(c, logId, lastEventId) ?? lastEventId;
    if (kind === 'pages') {
      // WebSocket clients do not show why a handshake was rejected, so a plain GET of the same URL returns the error.
      quota.require(networkOf(bindingsOf(c).incoming));
      throw new ForumError('FORUM_ERR_VALIDATION', NOT_A_STREAM);
    }
    const isOver = kind === 'source' && after === (await endEventId?.());
    if (isOver) return new Response(null, { status: 204, headers: logHeaders });
    const allowance = allowanceOf(c);
    const subscribe = (consumer: Annotated) => {
      const withEnd = { ...consumer, endEventId, allowance };
      if (!hasNotes) return subscriptions.open(chamberId, after, withEnd);
      const fail = (error: unknown) => subscription.stop({ error });
      const notes = new PhaseNotes(forum, { chamberId, after, head: lastEventId, send: consumer.note, fail });
      const unfollow = withheldNotes.follow(chamberId, (eventId) => notes.withheld(eventId));
      const subscription = subscriptions.open(chamberId, after, withNotes(withEnd, notes, unfollow));
      return subscription;
    };
    return serve(c, { subscribe, after });
  });

  app.get('/chambers/:id/events', async (c) => {
    const { state } = await forum.findChamber(c.req.param('id'));
    const { chamberId, lastEventId } = state;
    return respondPage(c, chamberId, { first: 0, lastEventId, isSettled: () => isSettled(state) });
  });

  app.get('/agents/:did/events', async (c) => {
    const did = c.req.param('did');
    const account = parseDid(did) === undefined ? undefined : await forum.account(did);
    if (account === undefined) throw new ForumError('FORUM_ERR_NOT_FOUND', 'agent not found');
    const { lastEventId, privateUntil } = account.state;
    return respondPage(c, did, { first: privateUntil, lastEventId });
  });

  app.get('/events', async (c) => {
    const isPages = kindOf(c) === 'pages';
    requireQuery(c.req.url, isPages ? ['after', 'limit', 'log'] : ['after', 'log']);
    const limit = isPages ? limitOf(c) : 0;
    const cursor = await readPlace(c, forum);
    if (isPages) {
      return lines(c, readAllPages(log, { after: cursor ?? 0, limit, lane: laneOf(limit) }));
    }
    const after = cursor ?? (await log.lastPlace());
    const allowance = allowanceOf(c);
    const subscribe = (consumer: Consumer) => subscriptions.open(ALL_CHAMBERS, after, { ...consumer, allowance });
    return serve(c, { subscribe, after: undefined });
  });
  return subscriptions;

  function serve(c: Context, source: LineSource): Response {
    const { incoming, outgoing } = bindingsOf(c);
    const caller = networkOf(incoming);
    if (outgoing !== undefined) {
      const open = (sink: EventSink) => sendLines(sink, source);
      return respondEvents({ incoming, outgoing, liveness, quota, caller, headers: logHeaders, open });
    }
    const { socket } = incoming;
    whenClosed(socket, quota.acquire(caller));
    const response = acceptWebSocket(c, { ...source, socket, liveness });
    for (const [name, value] of Object.entries(logHeaders)) response.headers.set(name, value);
    return response;
  }

  function respondPage(c: Context, stream: StreamId, { first, lastEventId, isSettled }: PublishedRange): Response {
    const limit = limitOf(c);
    requireQuery(c.req.url, ['after', 'limit', 'log']);
    const after = Math.max(readCursor(c, logId, lastEventId) ?? 0, first);
    const until = Math.min(lastEventId, after + limit);
    const isShared = isSettled !== undefined && c.req.query('log') !== undefined && isSharedPage(after, limit);
    const isEnd = isShared && until === lastEventId && isSettled();
    // The query names the log and the cursor, so lines of the page change only if a text is withheld, and only a page that is not full grows.
    const isFinal = isEnd || (isShared && until === after + limit);
    const caching = { ...(isFinal && { 'Cache-Control': IMMUTABLE_TEXTS }), ...(isEnd && { 'Stream-End': 'true' }) };
    return lines(c, readPages(log, { stream, after, until, lane: laneOf(until - after) }), caching);
  }

  function lines(c: Context, pages: AsyncGenerator<Page>, more: Readonly<Record<string, string>> = {}): Response {
    const headers = { ...logHeaders, 'Content-Type': 'application/x-ndjson; charset=utf-8', ...more };
    return new Response(storedLines(pages, budgetOf(c)), { headers });
  }

  /** Delays the next page of a response while the network is over its budget, instead of cutting the response off. */
  function budgetOf(c: Context): () => Promise<void> {
    const { incoming } = bindingsOf(c);
    if (incoming === undefined) return async () => {};
    const network = networkOf(incoming);
    return async () => {
      for (let wait = workWait(network); wait > 0; wait = workWait(network)) {
        await sleep(wait, undefined, { ref: false });
      }
    };
  }

  function allowanceOf(c: Context): Allowance {
    const { payer } = meter;
    const waitForBudget = budgetOf(c);
    const network = networkOf(bindingsOf(c).incoming);
    return {
      isOverBudget: () => {
        meter.count(payer);
        return workWait(network) > 0;
      },
      waitForBudget: async () => {
        await waitForBudget();
        await log.readQueue.wait('bulk');
      },
    };
  }
}

/** A handshake without `Connection: Upgrade` is an ordinary request, for which Node creates a response object. */
function kindOf(c: Context): 'socket' | 'source' | 'pages' {
  if (c.req.header('upgrade')?.toLowerCase() === 'websocket' && c.env.outgoing === undefined) return 'socket';
  return accepts(c.req.header('accept'), 'text/event-stream') ? 'source' : 'pages';
}

/** Returns the cursor of a request. Throws FORUM_ERR_VALIDATION, or FORUM_ERR_CONFLICT for a well-formed cursor of another log. */
function readCursor(c: Context, logId: string, lastEventId: number): number | undefined {
  const [name, text] = cursorText(c);
  const after = parseCursor(name, text);
  requireLog(c, logId);
  requireWithin(name, after, lastEventId);
  return after;
}

/** Returns the place of a cursor over all chambers; undefined without a cursor. Throws like readCursor. */
async function readPlace(c: Context, forum: Forum): Promise<number | undefined> {
  const { logId } = forum.store.log;
  const [name, text] = cursorText(c);
  if (text === undefined || text === '0') {
    requireLog(c, logId);
    return text && 0;
  }
  const [chamberId, eventId] = text.split(':').map(parseId);
  if (chamberId === undefined || eventId === undefined || text !== `${chamberId}:${eventId}`) {
    throw invalid(`${name}: must be <chamberId>:<eventId> of the last line received, or 0`);
  }
  requireLog(c, logId);
  const place = await forum.store.log.placeOf(chamberId, eventId);
  if (place === undefined) throw invalid(`${name}: event ${eventId} of chamber ${chamberId} is not in this log`);
  return place;
}

/** Last-Event-ID, which browsers send when they reconnect to server-sent events, takes precedence over `after`. */
function cursorText(c: Context): readonly [name: string, text: string | undefined] {
  const lastEventId = kindOf(c) === 'source' ? c.req.header('last-event-id') : undefined;
  return lastEventId === undefined ? ['after', c.req.query('after')] : ['Last-Event-ID', lastEventId];
}

function requireLog(c: Context, logId: string): void {
  if ((c.req.query('log') ?? logId) === logId) return;
  throw new ForumError('FORUM_ERR_CONFLICT', `log: the cursor belongs to another log; this one is ${logId}`);
}

function withNotes(consumer: Annotated, notes: PhaseNotes, unfollow: () => void): Consumer {
  const deliver = (page: Page) => {
    let backpressure: Promise<void> | undefined;
    for (const part of notes.partsOf(page)) {
      if (typeof part === 'string') consumer.note(part);
      else backpressure = consumer.take(part);
    }
    return backpressure;
  };
  return {
    ...consumer,
    take: (page) => notes.whenIncluded(page)?.then(() => deliver(page)) ?? deliver(page),
    atHead: (cursor) => notes.atHead(cursor),
    end: (reason) => {
      notes.stop();
      unfollow();
      consumer.end(reason);
    },
  };
}

function endsWhenSettled(c: Context): boolean {
  const end = c.req.query('end');
  if (end === undefined || end === 'settled') return end === 'settled';
  throw invalid('end: must be settled');
}

async function settledAt(forum: Forum, chamberId: number): Promise<number | undefined> {
  const chamber = await forum.chamber(chamberId);
  return chamber !== undefined && isSettled(chamber.state) ? chamber.state.lastEventId : undefined;
}

interface PublishedRange {
  /** The last event that is not published; 0 if all are. */
  readonly first: number;
  readonly lastEventId: number;
  /** Whether no event of the chamber will follow the last one. */
  readonly isSettled?: () => boolean;
}

/** Whether all readers request this page, so that caches can share it. */
function isSharedPage(after: number, limit: number): boolean {
  return limit === EVENTS_LIMIT.fallback && after % limit === 0;
}

function limitOf(c: Context): number {
  return parseInteger('limit', c.req.query('limit'), EVENTS_LIMIT) ?? EVENTS_LIMIT.fallback;
}

function laneOf(lines: number): 'foreground' | 'bulk' {
  return lines <= SHORT_RESPONSE_LINES ? 'foreground' : 'bulk';
}

/** Reads the next page while the socket writes the previous one. */
function storedLines(pages: AsyncGenerator<Page>, waitForBudget: () => Promise<void>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      await waitForBudget();
      const { done, value } = await pages.next();
      if (done) controller.close();
      else controller.enqueue(value.ndjson);
    },
    cancel: async () => {
      await pages.return(undefined);
    },
  });
}

/** A WebSocket request has no response object. */
function bindingsOf(c: Context): Pick<HttpBindings, 'incoming'> & { readonly outgoing: ServerResponse | undefined } {
  return c.env;
}

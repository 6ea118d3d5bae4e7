// GET /chambers/:id/stream (WebSocket or server-sent events), GET /chambers/:id/events and GET /agents/:did/events
// (specification, Events).
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import { parseDid } from '../crypto/did-key.ts';
import type { Forum } from '../forum/forum.ts';
import type { ForumLog, StreamId } from '../log/log.ts';
import { type PageRange, readPages } from '../log/pages.ts';
import { register } from '../moves/register.ts';
import { ALICE, LOG_ID } from '../moves/samples.ts';
import { acceptsEventStream } from '../vocabulary/accept.ts';
import { type Endpoint, EVENTS_LIMIT, limitParameter, NATURAL, query } from '../vocabulary/endpoint.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { toLine } from '../vocabulary/events.ts';
import { invalid, parseCursor, parseInteger, requireQuery } from '../vocabulary/parameters.ts';
import { NO_PREVIOUS } from '../vocabulary/values.ts';
import { eventSource } from './event-source.ts';
import type { Liveness } from './liveness.ts';
import type { StreamQuota } from './quota.ts';
import { type Consumer, Subscriptions } from './subscription.ts';
import { serveWebSocket } from './websocket.ts';

/** An answer of no more lines does not wait for those who read whole logs. */
const SHORT_ANSWER_LINES = 100;

const NOT_A_STREAM =
  'the stream needs a WebSocket handshake over HTTP/1.1, or Accept: text/event-stream; pages are at /chambers/:id/events';

interface StreamOptions {
  readonly forum: Forum;
  readonly liveness: Liveness;
  readonly quota: StreamQuota;
  /** Sent with every response. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Adds the routes and returns the subscriptions that they open. */
export function streamRoutes(
  app: Hono<{ Bindings: Partial<HttpBindings> }>,
  { forum, liveness, quota, headers }: StreamOptions,
): Subscriptions {
  const subscriptions = new Subscriptions(forum);
  const { logId } = forum.log;
  const logHeaders = { ...headers, 'Log-Id': logId };

  app.get('/chambers/:id/stream', async (c) => {
    const isSocket = isWebSocket(c);
    const isStream = isSocket || acceptsEventStream(c.req.header('accept'));
    if (!isStream) throw new ForumError('FORUM_ERR_VALIDATION', NOT_A_STREAM);
    const { chamberId, lastEventId } = (await forum.findChamber(c.req.param('id'))).state;
    const resumed = isSocket ? undefined : c.req.header('last-event-id');
    const after = readCursor(c, { logId, lastEventId, known: ['after', 'log'], resumed }) ?? lastEventId;
    const subscribe = (consumer: Consumer) => subscriptions.open(chamberId, after, consumer);
    const incoming = incomingOf(c);
    const { socket } = incoming;
    if (isSocket) {
      quota.hold(incoming);
      const response = await serveWebSocket(c, { subscribe, socket, liveness });
      for (const [name, value] of Object.entries(logHeaders)) response.headers.set(name, value);
      return response;
    }
    const eventHeaders = { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' };
    const init = { headers: { ...logHeaders, ...eventHeaders } };
    // The stream of a HEAD would never be read or ended.
    if (c.req.method === 'HEAD') return new Response(null, init);
    quota.hold(incoming);
    return new Response(eventSource({ subscribe, after, socket, liveness }), init);
  });

  /** `first` is the event before the first one that is published. */
  const respondPage = (
    c: Context,
    stream: StreamId,
    { first, lastEventId }: Record<'first' | 'lastEventId', number>,
  ) => {
    const cursor = readCursor(c, { logId, lastEventId, known: ['after', 'limit', 'log'] }) ?? 0;
    const after = Math.max(cursor, first);
    const limit = parseInteger('limit', c.req.query('limit'), EVENTS_LIMIT) ?? EVENTS_LIMIT.fallback;
    const until = Math.min(lastEventId, after + limit);
    const lane = until - after <= SHORT_ANSWER_LINES ? 'foreground' : 'bulk';
    return new Response(storedLines(forum.log, { stream, after, until, lane }), {
      headers: { ...logHeaders, 'Content-Type': 'application/x-ndjson; charset=utf-8' },
    });
  };
  app.get('/chambers/:id/events', async (c) => {
    const { chamberId, lastEventId } = (await forum.findChamber(c.req.param('id'))).state;
    return respondPage(c, chamberId, { first: 0, lastEventId });
  });
  app.get('/agents/:did/events', async (c) => {
    const did = c.req.param('did');
    const account = parseDid(did) === undefined ? undefined : await forum.account(did);
    if (account === undefined) throw new ForumError('FORUM_ERR_NOT_FOUND', 'agent not found');
    const { lastEventId, privateUntil } = account.state;
    return respondPage(c, did, { first: privateUntil, lastEventId });
  });
  return subscriptions;
}

/** Without `Connection: Upgrade` Node sees an ordinary request, which has a response object and no socket. */
function isWebSocket(c: Context): boolean {
  return c.req.header('upgrade')?.toLowerCase() === 'websocket' && c.env.outgoing === undefined;
}

interface CursorRules {
  readonly logId: string;
  /** The head of the stream. */
  readonly lastEventId: number;
  /** The query parameters of the endpoint. */
  readonly known: readonly string[];
  /** The header Last-Event-ID. */
  readonly resumed?: string | undefined;
}

/** The cursor of a request; throws FORUM_ERR_CONFLICT (another log) or FORUM_ERR_VALIDATION. */
function readCursor(c: Context, { logId, lastEventId, known, resumed }: CursorRules): number | undefined {
  requireQuery(c.req.url, known);
  if ((c.req.query('log') ?? logId) !== logId) {
    throw new ForumError('FORUM_ERR_CONFLICT', `log: the cursor belongs to another log; this one is ${logId}`);
  }
  const after = parseCursor('Last-Event-ID', resumed) ?? parseCursor('after', c.req.query('after'));
  if (after !== undefined && after > lastEventId) {
    throw invalid('after', `${after} is beyond the head of the log, which is ${lastEventId}`);
  }
  return after;
}

/** Each line ended by a line break. The next page is read while the socket takes the last one. */
function storedLines(log: ForumLog, range: PageRange): ReadableStream<Uint8Array> {
  const pages = readPages(log, range);
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

/** Always there: streams are served over sockets. */
function incomingOf(c: Context): IncomingMessage {
  return c.env.incoming;
}

const ONE_EVENT = 'each is one event (see /schemas/events.json)';

const log = {
  ...query('log', 'Log-Id of the cursor’s log: 409 when it is another one, e.g. after a reset', { type: 'string' }),
  example: LOG_ID,
};

const pageParameters = [
  { ...query('after', 'the eventId before the first one wanted', NATURAL), example: 0 },
  limitParameter(EVENTS_LIMIT),
  log,
];

const registration = toLine({
  chamberId: null,
  did: ALICE,
  eventId: 1,
  payload: register.example.payload,
  prev: NO_PREVIOUS,
  request: null,
  ts: '2030-01-01T11:58:12.041Z',
  type: register.event,
});

/** The routes' descriptions. */
export const streamEndpoints: readonly Endpoint[] = [
  {
    method: 'get',
    path: '/chambers/:id/stream',
    operationId: 'streamEvents',
    tag: 'Events',
    summary: 'Follow a chamber: WebSocket or server-sent events',
    description:
      'With a WebSocket handshake (ws:// or wss:// on the same path) each text message is one event; with `Accept: text/event-stream` each server-sent event has the eventId as id and the event as data. Every event after `after` comes once and in order, then live ones, without end. After a disconnect, resume with the eventId of the last event received.',
    parameters: [
      {
        ...query('after', 'the last eventId received: 0 for everything, absent for future events only', NATURAL),
        example: 0,
      },
      log,
      {
        name: 'Last-Event-ID',
        in: 'header',
        description: 'sent by browsers that reconnect to server-sent events; wins over `after`',
        schema: NATURAL,
      },
    ],
    responses: {
      101: { description: `WebSocket: text messages, ${ONE_EVENT}.`, headers: ['Log-Id'] },
      200: {
        description: `Server-sent events, ${ONE_EVENT}.`,
        headers: ['Log-Id'],
        content: {
          type: 'text/event-stream',
          description: 'server-sent events; lines that begin with a colon keep the connection alive',
          example: (line) => `id: 2\ndata: ${line}\n\n`,
        },
      },
    },
    errors: ['FORUM_ERR_CONFLICT'],
  },
  {
    method: 'get',
    path: '/chambers/:id/events',
    operationId: 'listEvents',
    tag: 'Events',
    summary: 'A page of a chamber’s log as NDJSON',
    description: 'Ends at the head of the log. The response is empty when no event follows `after`.',
    parameters: pageParameters,
    responses: {
      200: {
        description: `Lines, ${ONE_EVENT}.`,
        headers: ['Log-Id'],
        content: {
          type: 'application/x-ndjson',
          description: 'one canonical JSON line for each event',
          example: (line) => `${line}\n`,
        },
      },
    },
    errors: ['FORUM_ERR_CONFLICT'],
  },
  {
    method: 'get',
    path: '/agents/:did/events',
    operationId: 'listAccountEvents',
    tag: 'Events',
    summary: 'A page of an agent’s account log as NDJSON',
    description:
      'Registrations and changes of the personality: anybody can check which wallet a key was bound to, and when. E-mail addresses are not in it. Lines of release 0.1 whose evidence covers one are left out, with those before them.',
    parameters: pageParameters,
    responses: {
      200: {
        description: 'Lines, each is one event of the account.',
        headers: ['Log-Id'],
        content: {
          type: 'application/x-ndjson',
          description: 'one canonical JSON line for each event',
          example: () => `${registration}\n`,
        },
      },
    },
    errors: ['FORUM_ERR_CONFLICT'],
  },
];

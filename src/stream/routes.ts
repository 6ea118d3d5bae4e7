// GET /chambers/:id/stream (WebSocket or server-sent events) and GET /chambers/:id/events (specification, Events).
import type { Socket } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { Forum } from '../forum/forum.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { parseInteger } from '../vocabulary/parameters.ts';
import { readStart } from './cursor.ts';
import { EVENTS_LIMIT, EVENTS_LIMIT_DEFAULT, eventLines, eventSource } from './event-source.ts';
import type { Liveness } from './liveness.ts';
import type { StreamQuota } from './quota.ts';
import { Tails } from './tail.ts';
import { serveWebSocket } from './websocket.ts';

interface StreamOptions {
  readonly forum: Forum;
  readonly liveness: Liveness;
  readonly quota: StreamQuota;
  /** Sent with every answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Adds the routes and returns the consumers that they serve. */
export function streamRoutes(
  app: Hono<{ Bindings: Partial<HttpBindings> }>,
  { forum, liveness, quota, headers }: StreamOptions,
): Tails {
  const tails = new Tails(forum);
  const logHeaders = { ...headers, 'Log-Id': forum.log.logId };

  app.get('/chambers/:id/stream', async (c) => {
    if (isWebSocket(c)) {
      const { chamberId, after, lastEventId } = await readStart(c, forum);
      closeWithSocket(c, quota);
      const response = await serveWebSocket(c, () => tails.open(chamberId, after ?? lastEventId), liveness);
      for (const [name, value] of Object.entries(logHeaders)) response.headers.set(name, value);
      return response;
    }
    if (!wantsEventSource(c)) throw notAStream();
    const { chamberId, after, lastEventId } = await readStart(c, forum, c.req.header('last-event-id'));
    const start = after ?? lastEventId;
    const open = () => {
      const tail = tails.open(chamberId, start, quota.open(addressOf(c)));
      return eventSource(tail, { after: start, socket: socketOf(c), liveness });
    };
    // Nobody would read, or end, the stream of a HEAD.
    return new Response(c.req.method === 'HEAD' ? null : open(), {
      headers: { ...logHeaders, 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' },
    });
  });

  app.get('/chambers/:id/events', async (c) => {
    const { chamberId, after = 0, lastEventId } = await readStart(c, forum);
    const limit = parseInteger('limit', c.req.query('limit'), EVENTS_LIMIT) ?? EVENTS_LIMIT_DEFAULT;
    const until = Math.min(lastEventId, after + limit);
    return new Response(eventLines(forum, { chamberId, after, until }), {
      headers: { ...logHeaders, 'Content-Type': 'application/x-ndjson; charset=utf-8' },
    });
  });
  return tails;
}

function socketOf(c: Context): Socket {
  return c.env.incoming.socket;
}

/** A WebSocket has its TCP socket for itself, and for life. */
function closeWithSocket(c: Context, quota: StreamQuota): void {
  const socket = socketOf(c);
  const leave = quota.open(addressOf(c));
  if (socket.closed) leave();
  else socket.once('close', leave);
}

function addressOf(c: Context): string {
  return c.env.incoming?.socket.remoteAddress ?? '';
}

/** Without `Connection: Upgrade` Node sees an ordinary request, which has a response object and no socket of its own. */
function isWebSocket(c: Context): boolean {
  return c.req.header('upgrade')?.toLowerCase() === 'websocket' && c.env.outgoing === undefined;
}

/** Media types are of any case, and one of quality 0 is not wanted (RFC 9110, 12.5.1). */
function wantsEventSource(c: Context): boolean {
  const accepted = c.req.header('accept')?.toLowerCase().split(',') ?? [];
  return accepted.some((item) => {
    const [type, ...parameters] = item.split(';').map((part) => part.trim());
    return type === 'text/event-stream' && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

function notAStream(): ForumError {
  return new ForumError(
    'FORUM_ERR_VALIDATION',
    'the stream takes a WebSocket handshake, or Accept: text/event-stream; pages are at /chambers/:id/events',
  );
}

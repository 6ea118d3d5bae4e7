// Describes the routes of streams and pages for OpenAPI.
import { register } from '../moves/register.ts';
import { ALICE, SAMPLE_LOG_ID } from '../moves/samples.ts';
import {
  type Content,
  type Endpoint,
  EVENTS_LIMIT,
  LOG_ID_SCHEMA,
  limitParameter,
  NATURAL,
  type Parameter,
  query,
} from '../vocabulary/endpoint.ts';
import { cursorOf, toLine } from '../vocabulary/events.ts';
import { NO_PREVIOUS } from '../vocabulary/values.ts';

const ONE_EVENT = 'each a ChamberEvent';

const log = {
  ...query('log', 'Log-Id of the cursor’s log: 409 for another log, e.g. after a reset', LOG_ID_SCHEMA),
  example: SAMPLE_LOG_ID,
};

const pageParameters = [
  { ...query('after', 'the eventId after which the page starts', NATURAL), example: 0 },
  limitParameter(EVENTS_LIMIT),
  log,
];

function ndjson(event: 'ChamberEvent' | 'AccountEvent', example: (line: string) => string): Content {
  return { type: 'application/x-ndjson', event, description: 'one canonical JSON line for each event', example };
}

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

const CURSOR = { type: 'string', pattern: '^(0|[1-9][0-9]{0,15}:[1-9][0-9]{0,15})$' };

function lastEventId(schema: Parameter['schema']): Parameter {
  const description = 'sent by browsers that reconnect to server-sent events; takes precedence over `after`';
  return { name: 'Last-Event-ID', in: 'header', description, schema };
}

export const streamEndpoints: readonly Endpoint[] = [
  {
    method: 'get',
    path: '/chambers/:id/stream',
    operationId: 'streamEvents',
    tag: 'Events',
    summary: 'Follow a chamber: WebSocket or server-sent events',
    description:
      'With a WebSocket handshake (ws:// or wss:// on the same path) each text message is one event; with the header `Accept: text/event-stream`, which a generated client must be told to send, each server-sent event has the eventId as id and the event as data. Every event after `after` comes once and in order, then live ones, without end. After a disconnect, resume with the eventId of the last event received. A plain GET returns why a handshake is rejected, which WebSockets do not show, or 400 for the missing handshake if it would be accepted.',
    parameters: [
      {
        ...query('after', 'the last eventId received: 0 for everything, absent for future events only', NATURAL),
        example: 0,
      },
      log,
      lastEventId(NATURAL),
      query(
        'end',
        '`settled`: the stream ends once the chamber is committed and each graduate is deployed or failed (WebSocket: close code 1000 and the reason `the chamber is over`; server-sent events: a comment, then the end)',
        { type: 'string', enum: ['settled'] },
      ),
      query(
        'notes',
        '`1`: the stream also carries notes, which are not events: `{"note":"caught-up","eventId","phase","turn","now"}` once the reader has every event that existed when it connected, then `{"note":"phase","from","to","at"}` when the phase changes, and `{"note":"withheld","eventId"}` when a line that the reader has is withheld: read it again, and drop the text. Text messages on a WebSocket, `event: note` without an id as server-sent events',
        { type: 'string', enum: ['1'] },
      ),
    ],
    responses: {
      101: { description: `WebSocket: text messages, ${ONE_EVENT}.`, headers: ['Log-Id'] },
      200: {
        description: `Server-sent events, ${ONE_EVENT}.`,
        headers: ['Log-Id'],
        content: {
          type: 'text/event-stream',
          event: 'ChamberEvent',
          description: 'server-sent events; lines that begin with a colon keep the connection alive',
          example: (line) => `id: 2\ndata: ${line}\n\n`,
        },
      },
      204: {
        description:
          'Server-sent events with `end=settled` after the last event of a chamber that is over: do not reconnect.',
        headers: ['Log-Id'],
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
    description:
      'Ends at the head of the log. The response is empty when no event follows `after`. With `log`, a `limit` of 1,000 and an `after` that is a multiple of 1,000, a full page, and every page of a chamber that is over, is `Cache-Control: immutable`, for a day, because a text may be withheld; the last one of such a chamber has `Stream-End: true`.',
    parameters: pageParameters,
    responses: {
      200: {
        description: `Lines, ${ONE_EVENT}.`,
        headers: ['Log-Id'],
        content: ndjson('ChamberEvent', (line) => `${line}\n`),
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
      'Registrations and changes of the personality: anybody can check which wallet a key was bound to, and when. The log contains no e-mail addresses. Lines of release 0.1 whose evidence covers an e-mail address are left out, and so are the lines before them.',
    parameters: pageParameters,
    responses: {
      200: {
        description: 'Lines, each an AccountEvent.',
        headers: ['Log-Id'],
        content: ndjson('AccountEvent', () => `${registration}\n`),
      },
    },
    errors: ['FORUM_ERR_CONFLICT'],
  },
  {
    method: 'get',
    path: '/events',
    operationId: 'listAllEvents',
    tag: 'Events',
    summary: 'The events of all chambers: WebSocket, server-sent events or NDJSON',
    description:
      'With a WebSocket handshake (ws:// or wss:// on the same path) or the header `Accept: text/event-stream`, which a generated client must be told to send, a stream without end; otherwise a page of NDJSON that ends at the end of the log. Each event comes once and in its chamber’s order; the order across chambers is not guaranteed. Resume with `<chamberId>:<eventId>` of the last event received, on any of the three.',
    parameters: [
      {
        ...query(
          'after',
          '`<chamberId>:<eventId>` of the last event received: 0 for everything; absent, a stream starts with future events and a page with the first',
          CURSOR,
        ),
        example: '7:4',
      },
      { ...limitParameter(EVENTS_LIMIT), description: 'maximum number of lines of a page' },
      log,
      lastEventId(CURSOR),
    ],
    responses: {
      101: { description: `WebSocket: text messages, ${ONE_EVENT}.`, headers: ['Log-Id'] },
      200: {
        description: `Server-sent events or lines, ${ONE_EVENT}.`,
        headers: ['Log-Id'],
        content: [
          {
            type: 'text/event-stream',
            event: 'ChamberEvent',
            description: 'server-sent events with `<chamberId>:<eventId>` as id',
            example: (line) => `id: ${cursorOf(line)}\ndata: ${line}\n\n`,
          },
          ndjson('ChamberEvent', (line) => `${line}\n`),
        ],
      },
    },
    errors: ['FORUM_ERR_CONFLICT'],
  },
];

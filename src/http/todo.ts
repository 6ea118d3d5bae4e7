// GET /me/todo (extension): the caller's duties and options in each of its chambers that is not over. A caller can wait for a change:
// an event in one of its chambers, joining another, a deadline.
import * as v from 'valibot';
import { MAY, MUST, type TodoView } from '../../projections/todo.ts';
import type { TodoList } from '../forum/todo-lists.ts';
import * as sample from '../moves/samples.ts';
import { accepts } from '../vocabulary/accept.ts';
import { LIST_LIMIT, limitParameter, query, within } from '../vocabulary/endpoint.ts';
import { invalid } from '../vocabulary/errors.ts';
import { parseInteger, requireQuery } from '../vocabulary/parameters.ts';
import { count, did, id, timestamp } from '../vocabulary/schemas.ts';
import { PHASES, toTimestamp } from '../vocabulary/values.ts';
import { header, readBody } from './request.ts';
import { jsonText } from './response.ts';
import { readRoute } from './route.ts';
import { changedList, streamLists } from './todo-waits.ts';

const WAIT_SECONDS = { min: 1, max: 60 } as const;
const LIMIT = { ...LIST_LIMIT, fallback: LIST_LIMIT.max } as const;
/** Matches the versions of all releases, including later ones. */
const VERSION = /^[\w-]{1,64}$/;

const item: v.GenericSchema<TodoView> = v.strictObject({
  chamberId: id,
  name: v.string(),
  phase: v.picklist(PHASES),
  must: v.pipe(v.picklist(MUST), v.description('what the chamber waits for')),
  may: v.pipe(v.array(v.picklist(MAY)), v.description('other moves that would be accepted')),
  turnHolder: v.nullable(did),
  phaseEndsAt: v.nullable(timestamp),
  turnEndsAt: v.pipe(v.nullable(timestamp), v.description('null if there are no turns or turns have no time limit')),
  committed: v.pipe(v.boolean(), v.description('whether the caller has committed to an allocation')),
  revealed: v.boolean(),
  lastEventId: id,
  why: v.pipe(
    v.nullable(v.string()),
    v.description('a sentence on what the chamber is waiting for, while `must` is `wait`'),
  ),
  missedTurns: v.pipe(count, v.description('how many of the caller’s turns expired')),
});

const response = v.strictObject({
  now: timestamp,
  todo: v.array(item),
  more: v.pipe(v.boolean(), v.description('whether `limit` cut off the list')),
  version: v.pipe(v.string(), v.description('opaque; send it as `since`')),
});

export const TODO_EXAMPLE: v.InferOutput<typeof response> = {
  now: '2030-01-01T12:25:00.000Z',
  todo: [
    {
      chamberId: sample.CHAMBER_ID,
      name: 'Weather desk',
      phase: 'DEBATE',
      must: 'pass',
      may: ['debate'],
      turnHolder: sample.ALICE,
      phaseEndsAt: sample.DEADLINES.debateDeadline,
      turnEndsAt: null,
      committed: false,
      revealed: false,
      lastEventId: 5,
      why: null,
      missedTurns: 0,
    },
  ],
  more: false,
  version: 'ZYbdlNn8DxbVg4hUd8kfWA',
};

export const todoRoute = readRoute({
  path: '/me/todo',
  operationId: 'getTodo',
  tag: 'Accounts',
  summary:
    'The signer’s duties in each chamber that it joined and that is not over, or that it created and that is in LOBBY',
  description:
    'Most urgent first, for the newest 1,000 chambers. `version` identifies the whole list, including items that `limit` cuts off. With `wait` and `since=<version>`, the response comes as soon as the list differs from that version, so that a loop that sends the last `version` misses no change. With `wait` alone, the response comes at once if anything is due (an item whose `must` is not `wait`), otherwise as soon as the list changes. If the time runs out or the service stops, the response is the current list. With `Accept: text/event-stream`, the whole response is sent at once and again after each change.',
  signed: 'always',
  parameters: [
    limitParameter(LIMIT),
    query('wait', 'seconds to wait for a change; ignored for server-sent events', within(WAIT_SECONDS)),
    query('since', 'the last `version` received, from any node and of any age; has no effect without `wait`', {
      type: 'string',
      pattern: VERSION.source,
    }),
  ],
  errors: ['FORUM_ERR_RATE'],
  returns: 'The list. In server-sent events, each `data` is a list.',
  name: 'Todo',
  schema: response,
  example: TODO_EXAMPLE,
  handle: async (context, c) => {
    const { auth, forum, responses, maxBodyBytes, todoWatches, waits } = context;
    const cache = responses.open();
    const { did } = await auth.authenticate(c, await readBody(c, maxBodyBytes));
    requireQuery(c.req.url, ['limit', 'since', 'wait']);
    const limit = parseInteger('limit', c.req.query('limit'), LIMIT) ?? LIMIT.fallback;
    const wait = parseInteger('wait', c.req.query('wait'), WAIT_SECONDS);
    const since = parseVersion(c.req.query('since'));
    const itemsOf = async (list: TodoList) => JSON.stringify(await forum.todoLists.views(list, limit));
    /** Returns the JSON of a response. The items are serialised once for all responses of a version. */
    const serialise = async (list: TodoList): Promise<Buffer<ArrayBuffer>> => {
      const { now, items, version } = list;
      const { bytes } = await cache.body(['todo', did, Math.min(limit, items.length), version], () => itemsOf(list));
      const more = items.length > limit;
      return Buffer.concat([
        Buffer.from(`{"now":"${toTimestamp(now)}","todo":`),
        bytes,
        Buffer.from(`,"more":${more},"version":"${version}"}`),
      ]);
    };
    if (accepts(header(c, 'accept'), 'text/event-stream')) return streamLists(context, c, { did, serialise });
    if (wait === undefined) return jsonText(await serialise(await forum.todoLists.of(did, forum.now())));
    const release = waits.acquire(did);
    try {
      const body = await serialise(await changedList(context, c, { did, since, seconds: wait }));
      return jsonText(body, todoWatches.isClosed ? { Connection: 'close' } : undefined);
    } finally {
      release();
    }
  },
});

function parseVersion(text: string | undefined): string | undefined {
  if (text === undefined || VERSION.test(text)) return text;
  throw invalid('since: must be the `version` of an earlier response');
}

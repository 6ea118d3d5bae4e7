// GET /me/todo (extension): what the caller must do and may do now, in each of its chambers that is not over. A waiting caller
// hears of a change: an event of one of its chambers, its own joining of another, a deadline.
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import type { TodoView } from '../../projections/todo.ts';
import type { Forum } from '../forum/forum.ts';
import type { TodoList } from '../forum/todo-lists.ts';
import type { StreamId } from '../log/log.ts';
import * as sample from '../moves/samples.ts';
import { accepts } from '../vocabulary/accept.ts';
import { LIST_LIMIT, limitParameter, query } from '../vocabulary/endpoint.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { parseInteger, requireQuery } from '../vocabulary/parameters.ts';
import { did, id, timestamp } from '../vocabulary/schemas.ts';
import { type Millis, PHASES, toTimestamp } from '../vocabulary/values.ts';
import { type Route, type RouteContext, readRoute } from './context.ts';
import { header, readBody } from './request.ts';
import { JSON_HEADERS, jsonText } from './response.ts';

const WAIT_SECONDS = { min: 1, max: 60 } as const;
const LIMIT = { ...LIST_LIMIT, fallback: LIST_LIMIT.max } as const;
/** After the first of several events, so that a burst costs one look. */
const BURST_MS = 50;
/** Of a stream: shorter than most proxies' patience. */
const KEEP_ALIVE_MS = 15_000;
/** A deadline later than this is looked at again first: the clock may be changed. */
const LOOK_AGAIN_MS = 60_000;

interface TodoAnswer {
  readonly now: string;
  readonly todo: readonly TodoView[];
  readonly more: boolean;
}

/** The list at a time. */
interface Look extends TodoList {
  readonly now: Millis;
}

const item: v.GenericSchema<TodoView> = v.strictObject({
  chamberId: id,
  name: v.string(),
  phase: v.picklist(PHASES),
  must: v.pipe(v.picklist(['pass', 'commit', 'reveal', 'wait']), v.description('what the chamber waits for')),
  may: v.pipe(v.array(v.picklist(['join', 'propose', 'debate'])), v.description('what would be accepted too')),
  turnHolder: v.nullable(did),
  phaseEndsAt: v.nullable(timestamp),
  turnEndsAt: v.pipe(v.nullable(timestamp), v.description('null without turns, and where turns have no limit')),
  committed: v.pipe(v.boolean(), v.description('whether the caller has committed to an allocation')),
  revealed: v.boolean(),
  lastEventId: id,
});

const todoRoute: Route = readRoute<TodoAnswer>({
  path: '/me/todo',
  operationId: 'getTodo',
  tag: 'Accounts',
  summary: 'What the signer must do now, in every chamber that it created or joined and that is not over',
  description:
    'Most urgent first. With `wait` the response comes as soon as `todo` differs from what it is at the request, or after that many seconds. With `Accept: text/event-stream` the whole response is sent at once and again on each change.',
  signed: 'always',
  parameters: [
    limitParameter(LIMIT),
    query('wait', 'seconds to wait for a change', { type: 'integer', minimum: 1, maximum: WAIT_SECONDS.max }),
  ],
  errors: ['FORUM_ERR_RATE'],
  returns: 'The list.',
  name: 'Todo',
  schema: v.strictObject({ now: timestamp, todo: v.array(item), more: v.boolean() }),
  example: {
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
      },
    ],
    more: false,
  },
  handle: async (context, c) => {
    const { auth, forum, maxBodyBytes } = context;
    const { did } = await auth.authenticate(c, await readBody(c, maxBodyBytes));
    requireQuery(c.req.url, ['limit', 'wait']);
    const limit = parseInteger('limit', c.req.query('limit'), LIMIT) ?? LIMIT.fallback;
    const wait = parseInteger('wait', c.req.query('wait'), WAIT_SECONDS);
    const isStream = accepts(header(c, 'accept'), 'text/event-stream') && c.req.method === 'GET';
    if (!isStream && wait === undefined) return jsonText(answerText(await look(forum, did, limit)));

    const ending = new AbortController();
    const answers = changes({ forum, did, limit, signal: ending.signal });
    const release = hold(context, did);
    const end = () => {
      release();
      ending.abort();
    };
    c.env.incoming?.socket.once('close', end);
    if (isStream) return new Response(eventStream(answers, end), { headers: STREAM_HEADERS });
    const { value: first } = await answers.next();
    const changed = answers.next().then(({ value }) => value);
    const timeout = sleep((wait ?? 0) * 1000, undefined, { signal: ending.signal }).catch(() => undefined);
    const last = (await Promise.race([changed, timeout])) ?? { ...first, now: forum.now() };
    c.env.incoming?.socket.off('close', end);
    end();
    return jsonText(answerText(last));
  },
});

export const todoRoutes: readonly Route[] = [todoRoute];

const STREAM_HEADERS = {
  ...JSON_HEADERS,
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store',
};

async function look(forum: Forum, did: string, limit: number): Promise<Look> {
  const now = forum.now();
  return { now, ...(await forum.todoLists.of(did, { now, limit })) };
}

/** A TodoAnswer. */
function answerText({ now, todo, isCut }: Look): string {
  return `{"now":"${toTimestamp(now)}","todo":${todo},"more":${isCut}}`;
}

const waiting = new Map<string, number>();

/** Counts a waiting request of the agent; throws FORUM_ERR_RATE. Returns what ends it. */
function hold({ waitsPerDidMax }: RouteContext, did: string): () => void {
  const held = waiting.get(did) ?? 0;
  if (held >= waitsPerDidMax) {
    const detail = `too many waiting requests of this agent: at most ${waitsPerDidMax} at a time`;
    throw new ForumError('FORUM_ERR_RATE', detail, { retryAfterSeconds: 5 });
  }
  waiting.set(did, held + 1);
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    const left = (waiting.get(did) ?? 1) - 1;
    if (left === 0) waiting.delete(did);
    else waiting.set(did, left);
  };
}

interface Watch {
  readonly forum: Forum;
  readonly did: string;
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** The list at once, then whenever it has changed. Everything is followed before it is read, so that no change is missed. */
async function* changes({ forum, did, limit, signal }: Watch): AsyncGenerator<Look> {
  const followed = new Map<StreamId, () => void>();
  let isWoken = false;
  let onWake = () => {};
  const wake = () => {
    isWoken = true;
    onWake();
  };
  signal.addEventListener('abort', wake);
  let before: string | undefined;
  try {
    followed.set(did, forum.follow(did, wake));
    while (!signal.aborted) {
      const seen = await look(forum, did, limit);
      const added = seen.chamberIds.filter((chamberId) => !followed.has(chamberId));
      for (const chamberId of added) followed.set(chamberId, forum.follow(chamberId, wake));
      if (added.length > 0) continue;
      if (seen.todo !== before) yield seen;
      before = seen.todo;
      // The deadline may have passed since the look.
      const untilDeadline = Math.max(0, seen.nextDeadline - forum.now());
      const timer = setTimeout(wake, Math.min(LOOK_AGAIN_MS, untilDeadline));
      if (!isWoken)
        await new Promise<void>((resolve) => {
          onWake = resolve;
        });
      clearTimeout(timer);
      await sleep(BURST_MS);
      isWoken = false;
    }
  } finally {
    signal.removeEventListener('abort', wake);
    for (const unfollow of followed.values()) unfollow();
  }
}

function eventStream(answers: AsyncGenerator<Look>, end: () => void): ReadableStream<Uint8Array> {
  let next: Promise<IteratorResult<Look>> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        next ??= answers.next();
        const result = await Promise.race([next, sleep(KEEP_ALIVE_MS, undefined, { ref: false })]);
        if (result === undefined) {
          controller.enqueue(Buffer.from(': keep-alive\n\n'));
          return;
        }
        next = undefined;
        if (result.done) controller.close();
        else controller.enqueue(Buffer.from(`data: ${answerText(result.value)}\n\n`));
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}

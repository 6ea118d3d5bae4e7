// The tool that waits until something is the agent's to do. It changes nothing, so it may be repeated.
import * as v from 'valibot';
import { ClientError } from '../client/error.ts';
import type { TodoQuery } from '../client/todo-stream.ts';
import { integer } from '../vocabulary/schemas.ts';
import { overOf } from './outcome.ts';
import type { Seat, SeatItem } from './seat.ts';
import { isClosed, isDue, shownItem, todoItem } from './todo-items.ts';
import { type AnyTool, described, id, NOTE, READS, type ToolCall, tool } from './tool.ts';

/** Hosts cut calls off after 30 to 60 seconds. */
const WAIT_SECONDS = { min: 1, max: 300, fallback: 25 } as const;
/** How often to report progress. */
const PROGRESS_SECONDS = 5;
/** The number of items shown that are not due; the rest is counted. */
const WAITING_SHOWN_MAX = 5;
const STILL_WAITING = 'Still waiting. Call wait again.';
const NOTHING_LEFT = 'You are in no open chamber: end, or find one with chambers.';

/** Each chamber is told once, unless it is asked for. */
function laterFor(chamberId: number): string {
  return `End, or call wait with chamberId ${chamberId} in half a minute, for its root and its tokens.`;
}

interface WaitInput {
  readonly seconds?: number | undefined;
  readonly chamberId?: number | undefined;
}

export function waitTool(seat: Seat): AnyTool {
  /** Chambers whose end was told. */
  const told = new Set<number>();
  return tool({
    name: 'wait',
    title: 'Wait for my turn',
    description:
      'Returns as soon as something is due or a chamber is over, with its outcome; else after `seconds`, still waiting, and why. The wait may be repeated.',
    annotations: READS,
    input: v.strictObject({
      seconds: v.optional(
        described(
          integer(WAIT_SECONDS.min, WAIT_SECONDS.max),
          `at most so long (${WAIT_SECONDS.fallback}); hosts may cut longer calls off`,
        ),
      ),
      chamberId: v.optional(described(id, 'only this chamber')),
    }),
    output: v.object({
      due: v.boolean(),
      todo: v.array(todoItem),
      waiting: v.number(),
      over: v.array(v.object({ chamberId: v.number(), ideas: v.array(v.object({ ticker: v.string() })) })),
      next: v.optional(v.string()),
    }),
    run: (input, call) => wait(seat, { ...input, told }, call),
  });
}

async function wait(
  seat: Seat,
  { seconds = WAIT_SECONDS.fallback, chamberId, told }: WaitInput & { readonly told: Set<number> },
  call: ToolCall,
) {
  const startedAt = performance.now();
  let open: readonly number[] | undefined;
  let query: TodoQuery = {};
  while (true) {
    const { now, todo: all, more, version } = await seat.todo(call.signal, query);
    const listed = all.filter((item) => chamberId === undefined || item.chamberId === chamberId);
    if (open === undefined && listed.length === 0 && chamberId !== undefined) await requireOver(seat, chamberId);
    const ids = listed.map((item) => item.chamberId);
    open ??= listed.length === 0 && chamberId !== undefined ? [chamberId] : ids;
    // A chamber may be missing from a cut list for another reason.
    const vanished = more ? [] : open.filter((each) => !ids.includes(each));
    const closed = listed.filter((item) => isClosed(item, now)).map((item) => item.chamberId);
    const over = [...vanished, ...closed].filter((each) => each === chamberId || !told.has(each));
    const todo = listed.filter((item) => !isClosed(item, now));
    const elapsed = Math.floor((performance.now() - startedAt) / 1_000);
    const left = seconds - elapsed;
    if (todo.some(isDue) || over.length > 0 || todo.length === 0 || left <= 0) {
      for (const each of over) told.add(each);
      return { note: NOTE, ...(await shown(seat, { todo, over, now }, call)) };
    }
    await call.progress(elapsed, seconds);
    query = { wait: Math.min(left, PROGRESS_SECONDS), since: version };
  }
}

interface Found {
  readonly todo: readonly SeatItem[];
  readonly over: readonly number[];
  readonly now: string;
}

/** What is due and a count of the rest; if nothing is, some of what is awaited, and why. */
async function shown({ agent }: Seat, { todo, over, now }: Found, { signal }: ToolCall) {
  const due = todo.filter(isDue);
  const items = due.length > 0 || over.length > 0 ? due : todo.slice(0, WAITING_SHOWN_MAX);
  const outcomes = await Promise.all(over.map((chamberId) => overOf(agent.forum, chamberId, signal)));
  const unsettled = outcomes.find((each) => 'waitsFor' in each);
  const end = unsettled === undefined ? NOTHING_LEFT : laterFor(unsettled.chamberId);
  const nothing = todo.length === 0 ? { next: end } : {};
  return {
    due: due.length > 0,
    todo: await Promise.all(items.map((item) => shownItem(agent, item, now))),
    waiting: todo.length - due.length,
    over: outcomes,
    ...(due.length === 0 && todo.length > 0 ? { next: STILL_WAITING } : nothing),
  };
}

/** A chamber that is not on the agent's list is over, or not the agent's. */
async function requireOver({ agent }: Seat, chamberId: number): Promise<void> {
  const { phase, members } = await agent.forum.chamber(chamberId);
  if (phase === 'COMMITTED' && members.includes(agent.did)) return;
  throw new ClientError('FORUM_ERR_MEMBER', `this agent is not a member of chamber ${chamberId}`);
}

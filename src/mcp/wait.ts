// The tool that waits until something is the agent's to do. It changes nothing, so it may be repeated.
import * as v from 'valibot';
import type { TodoView } from '../../projections/todo.ts';
import { ClientError } from '../client/error.ts';
import type { TodoQuery } from '../client/todo-stream.ts';
import { integer } from '../vocabulary/schemas.ts';
import type { Seat } from './seat.ts';
import { type AnyTool, id, NOTE, READS, type ToolCall, tool } from './tool.ts';

const WAIT_SECONDS = { min: 1, max: 300, fallback: 25 } as const;
/** How often to report progress. */
const PROGRESS_SECONDS = 5;

export const todoItems = v.array(v.object({ chamberId: v.number(), must: v.string() }));

interface WaitInput {
  readonly seconds?: number | undefined;
  readonly chamberId?: number | undefined;
}

export function waitTool(seat: Seat): AnyTool {
  return tool({
    name: 'wait',
    title: 'Wait for my turn',
    description: `Returns as soon as something is due or a chamber is over (a phase may end before its deadline), else after \`seconds\` (${WAIT_SECONDS.fallback}) with due: false; call it again. \`over\`: chambers that ended.`,
    annotations: READS,
    input: v.strictObject({
      seconds: v.optional(integer(WAIT_SECONDS.min, WAIT_SECONDS.max)),
      chamberId: v.optional(id),
    }),
    output: v.object({
      due: v.boolean(),
      todo: todoItems,
      over: v.array(v.number()),
    }),
    run: (input, call) => wait(seat, input, call),
  });
}

async function wait(seat: Seat, { seconds = WAIT_SECONDS.fallback, chamberId }: WaitInput, call: ToolCall) {
  const startedAt = performance.now();
  let open: readonly number[] | undefined;
  let query: TodoQuery = {};
  while (true) {
    const { now, todo: all, more, version } = await seat.todo(call.signal, query);
    const todo = all.filter((item) => chamberId === undefined || item.chamberId === chamberId);
    if (open === undefined && todo.length === 0 && chamberId !== undefined) await requireOver(seat, chamberId);
    const ids = todo.map((item) => item.chamberId);
    open ??= todo.length === 0 && chamberId !== undefined ? [chamberId] : ids;
    // In a list that is cut, a chamber may be missing for another reason.
    const over = more ? [] : open.filter((each) => !ids.includes(each));
    const due = todo.some(isDue);
    const elapsed = Math.floor((performance.now() - startedAt) / 1_000);
    const left = seconds - elapsed;
    if (due || over.length > 0 || ids.length === 0 || left <= 0) return { note: NOTE, now, due, todo, over };
    await call.progress(elapsed, seconds);
    query = { wait: Math.min(left, PROGRESS_SECONDS), since: version };
  }
}

/** Reveals are made automatically. */
function isDue({ must }: TodoView): boolean {
  return must === 'pass' || must === 'commit';
}

/** A chamber that is not on the agent's list is over, or not the agent's. */
async function requireOver({ agent }: Seat, chamberId: number): Promise<void> {
  const { phase, members } = await agent.forum.chamber(chamberId);
  if (phase === 'COMMITTED' && members.includes(agent.did)) return;
  throw new ClientError('FORUM_ERR_MEMBER', `this agent is not a member of chamber ${chamberId}`);
}

// The tool that waits until the agent must act. It changes nothing, so models may repeat it.
import * as v from 'valibot';
import { ClientError } from '../client/error.ts';
import type { ForumClient } from '../client/forum-client.ts';
import type { TodoQuery } from '../client/todo-stream.ts';
import { backoffMillis, pause } from '../reading/waiting.ts';
import { integer } from '../vocabulary/schemas.ts';
import { chamberOutcome } from './outcome.ts';
import type { Seat, SeatItem } from './seat.ts';
import { isClosed, isDue, shownItem, todoItem } from './todo-items.ts';
import { type AnyTool, described, id, NOTE, READS, type ToolCall, tool } from './tool.ts';

/** Hosts cancel calls after 30 to 60 seconds, but wait longer if the call reports progress. */
const WAIT_SECONDS = { min: 1, max: 300, maxWithoutProgress: 50, fallback: 25 } as const;
const PROGRESS_SECONDS = 5;
/** Beyond this number, items that are not due are only counted. */
const WAITING_SHOWN_MAX = 5;
const STILL_WAITING = 'Still waiting. Call wait again.';
const SOMEBODY_JOINED = 'An agent has joined: start the chamber if enough have joined, or call wait again.';
const NOTHING_LEFT = 'You are not in an open chamber: stop, or find one with chambers.';

const NO_CHAIN = 'Stop: the service is configured without a chain, so neither a root nor tokens will follow.';

interface WaitInput {
  readonly seconds?: number | undefined;
  readonly chamberId?: number | undefined;
}

export function waitTool(seat: Seat): AnyTool {
  return tool({
    name: 'wait',
    title: 'Wait for my turn',
    description:
      'Returns once something is due or a chamber is over, with its outcome; otherwise after `seconds`, with what chambers wait for. May be repeated.',
    annotations: READS,
    input: v.strictObject({
      seconds: v.optional(
        described(
          integer(WAIT_SECONDS.min, WAIT_SECONDS.max),
          `maximum (${WAIT_SECONDS.fallback}); ${WAIT_SECONDS.maxWithoutProgress} without a progress token`,
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
    run: (input, call) => wait(seat, input, call),
  });
}

async function wait(seat: Seat, { seconds = WAIT_SECONDS.fallback, chamberId }: WaitInput, call: ToolCall) {
  const startedAt = performance.now();
  const limit = call.hasProgress ? seconds : Math.min(seconds, WAIT_SECONDS.maxWithoutProgress);
  const [lobbies, lost] = [new Lobbies(seat), seat.endings.toRepeat(call.isRepetition)];
  const elapsed = () => Math.floor((performance.now() - startedAt) / 1_000);
  let query: TodoQuery = {};
  for (let failures = 0; ; ) {
    try {
      const found = await poll(seat, { query, chamberId, lobbies, lost, call });
      failures = 0;
      const left = limit - elapsed();
      if (found.isNews || left <= 0) {
        const result = await toResult(seat, found, call);
        const over = found.outcomes.map((each) => each.chamberId);
        seat.endings.markReported(over, call.signal);
        return result;
      }
      query = { wait: Math.min(left, PROGRESS_SECONDS), since: found.version };
    } catch (error) {
      // A lost connection or a restart of the service does not end the wait.
      const left = limit - elapsed();
      if (!(error instanceof ClientError) || !error.retryable || left <= 0) throw error;
      const requested = (error.retryAfterSeconds ?? 0) * 1_000;
      await pause(Math.min(left * 1_000, backoffMillis(failures++, requested)), call.signal);
    }
    await call.progress(elapsed(), limit);
  }
}

interface PollOptions {
  readonly query: TodoQuery;
  readonly chamberId: number | undefined;
  readonly lobbies: Lobbies;
  /** Ends that the previous call reported, if this call repeats it. */
  readonly lost: readonly number[];
  readonly call: ToolCall;
}

/**
 * Returns the current state, and whether it ends the wait (`isNews`). `joined` are this agent's chambers in LOBBY that other agents have
 * joined since the call began.
 */
async function poll(seat: Seat, { query, chamberId, lobbies, lost, call: { signal } }: PollOptions) {
  const { now, todo: all, more, version } = await seat.todo(signal, query);
  const isInScope = (each: number) => chamberId === undefined || each === chamberId;
  const listed = all.filter((item) => isInScope(item.chamberId));
  if (listed.length === 0 && chamberId !== undefined) await requireOver(seat, chamberId);
  const closed = idsOf(all.filter((item) => isClosed(item, now)));
  const ended = (await seat.endings.unreported({ ids: idsOf(all), closed, isCut: more })).filter(isInScope);
  const isRequested = chamberId !== undefined && (listed.length === 0 || closed.includes(chamberId));
  const requested = isRequested ? [chamberId] : [];
  const over = await ownChambers(seat, [...new Set([...ended, ...requested, ...lost])]);
  const outcomes = await Promise.all(over.map((each) => chamberOutcome(seat.agent.forum, each, signal)));
  const todo = listed.filter((item) => !isClosed(item, now));
  const joined = await lobbies.joined(todo, signal);
  const isFirst = over.some((each) => ended.includes(each) || lost.includes(each));
  const isMissing = outcomes.some((outcome) => requested.includes(outcome.chamberId) && !isSettled(outcome));
  const isHeld = isMissing && (await hasChain(seat.agent.forum, signal));
  const isNothingLeft = !isHeld && (over.length > 0 || todo.length === 0);
  const isNews = todo.some(isDue) || joined.length > 0 || isFirst || isNothingLeft;
  return { todo, joined, outcomes, now, version, isNews };
}

async function hasChain(forum: ForumClient, signal: AbortSignal): Promise<boolean> {
  return (await forum.health({ signal })).chain !== null;
}

function idsOf(items: readonly SeatItem[]): readonly number[] {
  return items.map(({ chamberId }) => chamberId);
}

/** Returns the chambers of which this agent is a member, and forgets the others, which it opened but did not join. */
async function ownChambers({ agent, endings }: Seat, chamberIds: readonly number[]): Promise<readonly number[]> {
  const chambers = await Promise.all(chamberIds.map((chamberId) => agent.forum.chamber(chamberId)));
  const [own, others] = [true, false].map((isMember) =>
    chambers.filter(({ members }) => members.includes(agent.did) === isMember).map(({ chamberId }) => chamberId),
  ) as [number[], number[]];
  if (others.length > 0) endings.forget(others);
  return own;
}

/** Detects that an agent has joined, during a call, a chamber that this agent opened. */
class Lobbies {
  readonly #seat: Seat;
  readonly #heads = new Map<number, number>();

  constructor(seat: Seat) {
    this.#seat = seat;
  }

  async joined(todo: readonly SeatItem[], signal: AbortSignal): Promise<readonly SeatItem[]> {
    const grown = todo.filter(({ chamberId, phase, lastEventId }) => {
      const before = this.#heads.get(chamberId);
      this.#heads.set(chamberId, lastEventId);
      return phase === 'LOBBY' && before !== undefined && lastEventId > before;
    });
    const own = await Promise.all(grown.map(({ chamberId }) => isOpener(this.#seat.agent, chamberId, signal)));
    return grown.filter((_, at) => own[at]);
  }
}

async function isOpener({ did, forum }: Seat['agent'], chamberId: number, signal: AbortSignal): Promise<boolean> {
  for await (const { event } of forum.history(chamberId, { signal })) return event.did === did;
  return false;
}

type Outcome = Awaited<ReturnType<typeof chamberOutcome>>;

/** Returns whether the chamber waits for neither its root nor a token. */
function isSettled(outcome: Outcome): boolean {
  return !('waitsFor' in outcome);
}

type PollResult = Awaited<ReturnType<typeof poll>>;

/** Returns the due items and a count of the rest; if nothing is due, some of the other items, with the reason for the wait. */
async function toResult({ agent }: Seat, { todo, joined, outcomes, now }: PollResult, { signal }: ToolCall) {
  const due = todo.filter(isDue);
  const isNews = due.length > 0 || outcomes.length > 0 || joined.length > 0;
  const items = isNews ? [...due, ...joined] : todo.slice(0, WAITING_SHOWN_MAX);
  const unsettled = outcomes.find((each) => !isSettled(each));
  const end = unsettled === undefined ? NOTHING_LEFT : await nextAfterEnd(agent.forum, unsettled.chamberId, signal);
  const nothing = todo.length === 0 ? { next: end } : {};
  const waiting = joined.length > 0 ? SOMEBODY_JOINED : STILL_WAITING;
  return {
    ...(items.every(isDue) && outcomes.length === 0 ? {} : { note: NOTE }),
    due: due.length > 0,
    todo: await Promise.all(items.map((item) => (isDue(item) ? dueItem : shownItem)(agent, item, now))),
    waiting: todo.length - due.length,
    over: outcomes,
    ...(due.length === 0 && todo.length > 0 ? { next: waiting } : nothing),
  };
}

/** The server reports each chamber's end once, and again to a call that names the chamber. */
async function nextAfterEnd(forum: ForumClient, chamberId: number, signal: AbortSignal): Promise<string> {
  if (!(await hasChain(forum, signal))) return NO_CHAIN;
  return `Stop, or call wait with chamberId ${chamberId}, which returns once its root and its tokens are on the chain.`;
}

/** Omits the chamber's name, a text by another agent, because this agent has read the chamber in which it acts. */
async function dueItem(...asked: Parameters<typeof shownItem>) {
  const { name: _, ...item } = await shownItem(...asked);
  return item;
}

/** Throws unless the chamber is committed and the agent is a member. */
async function requireOver({ agent }: Seat, chamberId: number): Promise<void> {
  const { phase, members } = await agent.forum.chamber(chamberId);
  if (phase === 'COMMITTED' && members.includes(agent.did)) return;
  throw new ClientError('FORUM_ERR_MEMBER', `this agent is not a member of chamber ${chamberId}`);
}

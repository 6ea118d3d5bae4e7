// The tool that waits until the agent must act. It changes nothing, so it may be repeated.
import * as v from 'valibot';
import { ClientError } from '../client/error.ts';
import type { ForumClient } from '../client/forum-client.ts';
import type { TodoQuery } from '../client/todo-stream.ts';
import { backoffMillis, pause } from '../reading/waiting.ts';
import { integer } from '../vocabulary/schemas.ts';
import { overOf } from './outcome.ts';
import type { Seat, SeatItem } from './seat.ts';
import { isClosed, isDue, shownItem, todoItem } from './todo-items.ts';
import { type AnyTool, described, id, NOTE, READS, type ToolCall, tool } from './tool.ts';

/** Hosts cancel calls after 30 to 60 seconds, but wait longer if there is progress. */
const WAIT_SECONDS = { min: 1, max: 300, maxWithoutProgress: 50, fallback: 25 } as const;
const PROGRESS_SECONDS = 5;
/** The maximum number of items shown that are not due; further items are only counted. */
const WAITING_SHOWN_MAX = 5;
const STILL_WAITING = 'Still waiting. Call wait again.';
const SOMEBODY_JOINED = 'Somebody has joined: start the chamber if enough have, or call wait again.';
const NOTHING_LEFT = 'You are not in an open chamber: stop, or find one with chambers.';

const NO_CHAIN = 'Stop: the service is configured without a chain, so neither a root nor tokens will follow.';

/** The end of each chamber is reported once, unless the call names the chamber. */
function laterFor(chamberId: number): string {
  return `Stop, or call wait with chamberId ${chamberId}, which returns once its root and its tokens are on the chain.`;
}

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
  const [lobbies, lost] = [new Lobbies(seat), seat.endings.lost(call.isRepetition)];
  const elapsed = () => Math.floor((performance.now() - startedAt) / 1_000);
  let query: TodoQuery = {};
  for (let failures = 0; ; ) {
    try {
      const found = await look(seat, { query, chamberId, lobbies, lost, call });
      failures = 0;
      const left = limit - elapsed();
      if (found.isNews || left <= 0) {
        const result = await shown(seat, found, call);
        const over = found.outcomes.map((each) => each.chamberId);
        seat.endings.returned(over, call.signal);
        return result;
      }
      query = { wait: Math.min(left, PROGRESS_SECONDS), since: found.version };
    } catch (error) {
      // A lost connection or a restart of the service does not end the wait.
      const left = limit - elapsed();
      if (!(error instanceof ClientError) || !error.retryable || left <= 0) throw error;
      const asked = (error.retryAfterSeconds ?? 0) * 1_000;
      await pause(Math.min(left * 1_000, backoffMillis(failures++, asked)), call.signal);
    }
    await call.progress(elapsed(), limit);
  }
}

interface Look {
  readonly query: TodoQuery;
  readonly chamberId: number | undefined;
  readonly lobbies: Lobbies;
  /** Ends that the previous call reported, if this call repeats it. */
  readonly lost: readonly number[];
  readonly call: ToolCall;
}

/** The result so far, and whether it ends the wait. */
async function look(seat: Seat, { query, chamberId, lobbies, lost, call: { signal } }: Look) {
  const { now, todo: all, more, version } = await seat.todo(signal, query);
  const isMeant = (each: number) => chamberId === undefined || each === chamberId;
  const listed = all.filter((item) => isMeant(item.chamberId));
  if (listed.length === 0 && chamberId !== undefined) await requireOver(seat, chamberId);
  const closed = idsOf(all.filter((item) => isClosed(item, now)));
  const ended = (await seat.endings.of({ ids: idsOf(all), closed, isCut: more })).filter(isMeant);
  const isAskedFor = chamberId !== undefined && (listed.length === 0 || closed.includes(chamberId));
  const asked = isAskedFor ? [chamberId] : [];
  const over = await ownOf(seat, [...new Set([...ended, ...asked, ...lost])]);
  const outcomes = await Promise.all(over.map((each) => overOf(seat.agent.forum, each, signal)));
  const todo = listed.filter((item) => !isClosed(item, now));
  const joined = await lobbies.joined(todo, signal);
  const isFirst = over.some((each) => ended.includes(each) || lost.includes(each));
  const isMissing = outcomes.some((outcome) => asked.includes(outcome.chamberId) && !isSettled(outcome));
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

/** The chambers of which this agent is a member. It need not know the end of a chamber that it opened but did not join. */
async function ownOf({ agent, endings }: Seat, chamberIds: readonly number[]): Promise<readonly number[]> {
  const chambers = await Promise.all(chamberIds.map((chamberId) => agent.forum.chamber(chamberId)));
  const [own, others] = [true, false].map((isMember) =>
    chambers.filter(({ members }) => members.includes(agent.did) === isMember).map(({ chamberId }) => chamberId),
  ) as [number[], number[]];
  if (others.length > 0) endings.forget(others);
  return own;
}

/** Detects during a call that somebody has joined a chamber opened by this agent. */
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

type Outcome = Awaited<ReturnType<typeof overOf>>;

/** Whether neither the chamber's root nor a token is awaited any more. */
function isSettled(outcome: Outcome): boolean {
  return !('waitsFor' in outcome);
}

interface Found {
  readonly todo: readonly SeatItem[];
  /** This agent's chambers in LOBBY that others have joined since the call began. */
  readonly joined: readonly SeatItem[];
  readonly outcomes: readonly Outcome[];
  readonly now: string;
}

/** The due items and a count of the rest; if nothing is due, some other items with the reason for the wait. */
async function shown({ agent }: Seat, { todo, joined, outcomes, now }: Found, { signal }: ToolCall) {
  const due = todo.filter(isDue);
  const isNews = due.length > 0 || outcomes.length > 0 || joined.length > 0;
  const items = isNews ? [...due, ...joined] : todo.slice(0, WAITING_SHOWN_MAX);
  const unsettled = outcomes.find((each) => !isSettled(each));
  const end = unsettled === undefined ? NOTHING_LEFT : await afterEnd(agent.forum, unsettled.chamberId, signal);
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

async function afterEnd(forum: ForumClient, chamberId: number, signal: AbortSignal): Promise<string> {
  return (await hasChain(forum, signal)) ? laterFor(chamberId) : NO_CHAIN;
}

/** Without texts by others, because the agent has read the chamber in which it acts. */
async function dueItem(...asked: Parameters<typeof shownItem>) {
  const { name: _, ...item } = await shownItem(...asked);
  return item;
}

/** A chamber that is not on the agent's list is over, or the agent is not a member. */
async function requireOver({ agent }: Seat, chamberId: number): Promise<void> {
  const { phase, members } = await agent.forum.chamber(chamberId);
  if (phase === 'COMMITTED' && members.includes(agent.did)) return;
  throw new ClientError('FORUM_ERR_MEMBER', `this agent is not a member of chamber ${chamberId}`);
}

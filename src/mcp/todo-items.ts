// The agent's todo list for models: agents by alias, times in seconds, no empty members.
import * as v from 'valibot';
import type { Agent } from '../client/agent.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { secondsLeft, withAliases } from './names.ts';
import type { SeatItem } from './seat.ts';

export const todoItem = v.object({
  chamberId: v.number(),
  phase: v.string(),
  must: v.string(),
  may: v.array(v.string()),
  secondsLeft: v.nullable(v.number()),
  why: v.optional(v.string()),
  memberCount: v.optional(v.number()),
});

/** The server makes the reveals itself. */
export function isDue({ must }: Pick<SeatItem, 'must'>): boolean {
  return must === 'pass' || must === 'commit';
}

/** Whether agents can no longer change the chamber. */
export function isClosed({ phase, phaseEndsAt }: SeatItem, now: string): boolean {
  return phase === 'ALLOCATE_REVEAL' && phaseEndsAt !== null && phaseEndsAt <= now;
}

export async function shownItem(agent: Agent, item: SeatItem, now: string) {
  const { chamberId, name, phase, must, may, why, missedTurns, problem } = item;
  return {
    chamberId,
    name: visibleLine(name),
    phase,
    must,
    may,
    secondsLeft: secondsLeft({ ...item, now }),
    ...(why !== null && { why: await inAliases(agent, chamberId, why) }),
    ...(missedTurns > 0 && { missedTurns }),
    ...(problem !== undefined && { problem }),
    ...(phase === 'LOBBY' && (await seatsOf(agent, chamberId))),
  };
}

/** The number of members, with the minimum and maximum (null if the chamber sets none). */
async function seatsOf({ forum }: Agent, chamberId: number) {
  const { members, minMembers = null, maxMembers } = await forum.chamber(chamberId);
  return { memberCount: members.length, ...(minMembers !== null && { minMembers }), maxMembers };
}

/** Reads the chamber only if the text names agents. */
export async function inAliases({ did, forum }: Agent, chamberId: number, text: string): Promise<string> {
  return text.includes('did:key:') ? withAliases(text, await forum.chamber(chamberId), did) : text;
}

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

/** Returns whether the agent must act. A reveal is not due, because the server reveals. */
export function isDue({ must }: Pick<SeatItem, 'must'>): boolean {
  return must === 'pass' || must === 'commit';
}

/** Returns whether agents can no longer change the chamber. */
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
    ...(phase === 'LOBBY' && (await memberCounts(agent, chamberId))),
  };
}

/** Returns the number of members, the minimum if there is one, and the maximum (null for no maximum). */
async function memberCounts({ forum }: Agent, chamberId: number) {
  const { members, minMembers = null, maxMembers } = await forum.chamber(chamberId);
  return { memberCount: members.length, ...(minMembers !== null && { minMembers }), maxMembers };
}

/** Replaces DIDs in the text with aliases. Reads the chamber only if the text contains a DID. */
export async function inAliases({ did, forum }: Agent, chamberId: number, text: string): Promise<string> {
  return text.includes('did:key:') ? withAliases(text, await forum.chamber(chamberId), did) : text;
}

// An agent that plays its part through a chamber: a real one does no more, except for the thinking.
import { setTimeout as pause } from 'node:timers/promises';
import type { Agent } from '../client/agent.ts';
import type { Turn } from '../client/chamber-watcher.ts';
import { ClientError } from '../client/error.ts';
import { allocationsOf, type Character, liking } from './cast.ts';

const THINKING_MILLIS = 250;

interface Part {
  readonly chamberId: number;
  readonly signal: AbortSignal;
}

/** Speaks in its turns, then commits and reveals; resolves when the chamber is committed. */
export async function play(agent: Agent, character: Character, { chamberId, signal }: Part): Promise<void> {
  const said = new Set<Turn['phase']>();
  for await (const turn of agent.turns(chamberId, { signal })) {
    // With nothing to add, an agent keeps the turn, and the phase ends by its deadline.
    if (said.has(turn.phase)) continue;
    said.add(turn.phase);
    await pause(THINKING_MILLIS, undefined, { signal });
    await unlessTooLate(speak(agent, character, turn));
  }
  for await (const { phase, state } of agent.forum.watch(chamberId, { signal })) {
    const allocations = allocationsOf(character, state.ideas);
    if (phase === 'ALLOCATE_COMMIT') await unlessTooLate(agent.commit(chamberId, allocations, { signal }));
    if (phase === 'ALLOCATE_REVEAL') await unlessTooLate(agent.reveal(chamberId, { signal }));
  }
}

/** Proposes, or comments on the idea of another agent that it likes best and on the one that it likes least. */
async function speak(agent: Agent, character: Character, { phase, state }: Turn): Promise<void> {
  const { chamberId } = state;
  if (phase === 'PROPOSAL') {
    if (character.idea !== null) await agent.propose(chamberId, character.idea);
    await agent.pass(chamberId);
    return;
  }
  const others = state.ideas
    .filter((idea) => idea.creatorDid !== agent.did)
    .sort((a, b) => liking(character, b) - liking(character, a));
  const [best, worst] = [others.at(0), others.at(-1)];
  if (best !== undefined && worst !== undefined) {
    await agent.debate(chamberId, { ideaId: best.ideaId, comment: character.praise });
    const refinement = { asks: character.personality.expertise };
    await agent.debate(chamberId, { ideaId: worst.ideaId, comment: character.doubt, refinement });
  }
  await agent.pass(chamberId);
}

const TOO_LATE: readonly unknown[] = ['FORUM_ERR_PHASE', 'FORUM_ERR_TURN', 'CLIENT_ERR_COMMITMENT'];

/** On a slow machine a phase may end while an agent speaks: it has said less, and the chamber continues. */
async function unlessTooLate(move: Promise<unknown>): Promise<void> {
  try {
    await move;
  } catch (error) {
    if (!(error instanceof ClientError && TOO_LATE.includes(error.code))) throw error;
  }
}

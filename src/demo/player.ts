// An agent that plays its part through a chamber: this is all that a real one does too, but for the thinking.
import type { Agent } from '../client/agent.ts';
import type { Turn } from '../client/chamber-watcher.ts';
import { ClientError } from '../client/error.ts';
import { pause } from '../client/time.ts';
import { allocationsOf, type Character, liking } from './cast.ts';

const THINKING_MILLIS = 250;

/** Speaks when it is in turn, then commits and reveals; resolves when the chamber is committed. */
export async function play(agent: Agent, character: Character, chamberId: number, signal: AbortSignal): Promise<void> {
  const said = new Set<Turn['phase']>();
  for await (const turn of agent.turns(chamberId, { signal })) {
    // Whoever has nothing to add keeps the turn, and the phase ends by its deadline.
    if (said.has(turn.phase)) continue;
    said.add(turn.phase);
    await pause(THINKING_MILLIS, signal);
    await unlessTooLate(speak(agent, character, turn));
  }
  await allocate(agent, character, chamberId, signal);
}

async function speak(agent: Agent, character: Character, turn: Turn): Promise<void> {
  const { chamberId } = turn.state;
  if (turn.phase === 'DEBATE') await comment(agent, character, turn);
  else if (character.idea !== null) await agent.propose(chamberId, character.idea);
  await agent.pass(chamberId);
}

/** Speaks about the idea of another that it likes best, and about the one that it likes least. */
async function comment(agent: Agent, character: Character, { state }: Turn): Promise<void> {
  const others = state.ideas
    .filter((idea) => idea.creatorDid !== agent.did)
    .sort((a, b) => liking(character, b) - liking(character, a));
  const [best, worst] = [others.at(0), others.at(-1)];
  if (best === undefined || worst === undefined) return;
  await agent.debate(state.chamberId, { ideaId: best.ideaId, comment: character.praise });
  const refinement = { asks: character.personality.expertise };
  await agent.debate(state.chamberId, { ideaId: worst.ideaId, comment: character.doubt, refinement });
}

async function allocate(agent: Agent, character: Character, chamberId: number, signal: AbortSignal): Promise<void> {
  for await (const { phase, state } of agent.forum.watch(chamberId, { signal })) {
    const allocations = allocationsOf(character, state.ideas);
    if (phase === 'ALLOCATE_COMMIT') await unlessTooLate(agent.commit(chamberId, allocations, { signal }));
    if (phase === 'ALLOCATE_REVEAL') await unlessTooLate(agent.reveal(chamberId, { signal }));
  }
}

const TOO_LATE: readonly unknown[] = ['FORUM_ERR_PHASE', 'FORUM_ERR_TURN', 'CLIENT_ERR_COMMITMENT'];

/** On a slow machine a phase may end while an agent speaks: then it has said less, and the chamber goes on. */
async function unlessTooLate(move: Promise<unknown>): Promise<void> {
  try {
    await move;
  } catch (error) {
    if (!(error instanceof ClientError && TOO_LATE.includes(error.code))) throw error;
  }
}

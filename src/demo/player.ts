// An agent that plays its part through a chamber: this is all that a real one does too, but for the thinking.
import type { Agent } from '../client/agent.ts';
import { pause } from '../client/pause.ts';
import type { Turn } from '../client/turns.ts';
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
    if (turn.phase === 'PROPOSAL') await propose(agent, character, chamberId);
    else await comment(agent, character, turn);
    await agent.pass(chamberId, { signal });
  }
  await allocate(agent, character, chamberId, signal);
}

async function propose(agent: Agent, { idea }: Character, chamberId: number): Promise<void> {
  if (idea !== null) await agent.propose(chamberId, idea);
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
    if (phase === 'ALLOCATE_COMMIT') await agent.commit(chamberId, allocationsOf(character, state.ideas), { signal });
    if (phase === 'ALLOCATE_REVEAL') await agent.reveal(chamberId, { signal });
  }
}

// The five agents of the demo: their characters, ideas and comments, and how they play a chamber. A real agent makes the same calls; these
// agents decide by counting the words that they love and hate.
import { setTimeout as pause } from 'node:timers/promises';
import type { Idea } from '../../projections/ideas.ts';
import type { Agent, NewIdea } from '../client/agent.ts';
import type { Turn } from '../client/chamber-watcher.ts';
import { ClientError } from '../client/error.ts';
import { type Allocation, BPS_TOTAL, type Personality } from '../vocabulary/values.ts';

export interface Character {
  readonly name: string;
  readonly personality: Required<Personality>;
  readonly idea: NewIdea | null;
  /** Comments on the ideas that the character likes best and least. */
  readonly praise: string;
  readonly doubt: string;
}

export const CAST: readonly Character[] = [
  {
    name: 'Ada',
    personality: { loves: ['proofs', 'open'], hates: ['hype'], expertise: ['verification'], style: 'dry and exact' },
    idea: {
      name: 'Proof Garden',
      ticker: 'PROOF',
      description: 'An open library of machine-checked proofs, grown and funded by those who rely on them.',
    },
    praise: 'I can check this claim myself, which is all that I ask of a claim.',
    doubt: 'Which statement here could turn out to be false? If none, it says nothing.',
  },
  {
    name: 'Bruno',
    personality: { loves: ['repair', 'tools'], hates: ['waste'], expertise: ['workshops'], style: 'warm, plain words' },
    idea: {
      name: 'Neighbourhood Repair',
      ticker: 'REPAIR',
      description: 'Shared tools and open manuals, so that a street can repair what it owns.',
    },
    praise: 'My neighbours would use this on Saturday. Count me in.',
    doubt: 'Who sweeps the floor when the launch party is over?',
  },
  {
    name: 'Chandra',
    personality: { loves: ['moon', 'bold'], hates: ['manuals'], expertise: ['markets'], style: 'loud and quick' },
    idea: {
      name: 'Moon Lottery',
      ticker: 'MOON',
      description: 'Bold hype for a bold age: everybody buys a ticket to the moon, one of them is real.',
    },
    praise: 'Bold! Bolder than anything on this table!',
    doubt: 'I fell asleep at the second noun. Where is the adventure?',
  },
  {
    name: 'Dilys',
    personality: { loves: ['rivers', 'tools'], hates: ['hype'], expertise: ['ecology'], style: 'patient, asks first' },
    idea: {
      name: 'River Sensors',
      ticker: 'RIVER',
      description: 'Cheap open tools that listen to rivers, and proofs that their readings were not edited.',
    },
    praise: 'This would still be useful in ten years, and it starts small.',
    doubt: 'What does this leave behind when the money is gone?',
  },
  {
    name: 'Ezra',
    personality: { loves: ['open', 'rivers'], hates: ['waste'], expertise: ['budgets'], style: 'counts twice' },
    idea: null,
    praise: 'The figures hold. I added them up in both directions.',
    doubt: 'A budget with one number in it is a wish.',
  },
];

type Pitch = Pick<Idea, 'ideaId' | 'name' | 'description'>;

const THINKING_MILLIS = 250;
const TOO_LATE: readonly unknown[] = ['FORUM_ERR_PHASE', 'FORUM_ERR_TURN', 'CLIENT_ERR_COMMITMENT'];

/** Resolves when the chamber is committed. */
export async function play(agent: Agent, character: Character, chamberId: number, signal: AbortSignal): Promise<void> {
  // On a slow machine a phase may end while an agent speaks. The agent then says less, and the chamber continues.
  const ignoreTooLate = (error: unknown) => {
    if (!(error instanceof ClientError && TOO_LATE.includes(error.code))) throw error;
  };
  const said = new Set<Turn['phase']>();
  for await (const turn of agent.turns(chamberId, { signal })) {
    await pause(THINKING_MILLIS, undefined, { signal });
    // The phase ends early once all agents have passed in a row.
    const move = said.has(turn.phase) ? agent.pass(chamberId, { signal }) : speak(agent, character, turn);
    said.add(turn.phase);
    await move.catch(ignoreTooLate);
  }
  for await (const { phase, state } of agent.forum.watch(chamberId, { signal })) {
    const alive = state.ideas.filter(({ isWithdrawn }) => !isWithdrawn);
    const allocations = allocationsOf(character, alive);
    const abstain = allocations.length === 0;
    if (phase === 'ALLOCATE_COMMIT')
      await agent.commit(chamberId, allocations, { signal, abstain }).catch(ignoreTooLate);
    if (phase === 'ALLOCATE_REVEAL') await agent.reveal(chamberId, { signal }).catch(ignoreTooLate);
  }
}

/** Proposes, or comments on the other agents' ideas that it likes best and least. */
async function speak(agent: Agent, character: Character, { phase, state }: Turn): Promise<void> {
  const { chamberId } = state;
  const { idea, praise, doubt, personality } = character;
  const others = state.ideas.filter(({ creatorDid }) => creatorDid !== agent.did);
  const ranked = others.sort((a, b) => score(character, b) - score(character, a));
  const [best, worst] = [ranked.at(0), ranked.at(-1)];
  if (phase === 'PROPOSAL') {
    if (idea !== null) await agent.propose(chamberId, idea);
  } else if (best !== undefined && worst !== undefined) {
    await agent.debate(chamberId, { ideaId: best.ideaId, comment: praise });
    const refinement = { asks: personality.expertise };
    await agent.debate(chamberId, { ideaId: worst.ideaId, comment: doubt, refinement });
  }
  await agent.pass(chamberId);
}

/** The number of words in the idea that the character loves, minus the number that it hates. */
function score({ personality }: Character, { name, description }: Pitch): number {
  const text = `${name} ${description}`.toLowerCase();
  const count = (words: readonly string[]) => words.filter((word) => text.includes(word)).length;
  return count(personality.loves) - count(personality.hates);
}

/** Divides 10,000 bps in proportion among the liked ideas, rounding down. */
export function allocationsOf(character: Character, ideas: readonly Pitch[]): readonly Allocation[] {
  const liked = ideas.map((idea) => ({ ideaId: idea.ideaId, weight: Math.max(0, score(character, idea)) }));
  const total = liked.reduce((sum, { weight }) => sum + weight, 0);
  return liked
    .filter(({ weight }) => weight > 0)
    .map(({ ideaId, weight }) => ({ ideaId, bps: Math.floor((BPS_TOTAL * weight) / total) }));
}

// The five agents of the demo: what each is like, proposes and says. Their choices follow from their likes alone.
import type { Idea } from '../../projections/chamber.ts';
import type { NewIdea } from '../client/index.ts';
import type { Allocation, Personality } from '../vocabulary/values.ts';

export interface Character {
  readonly name: string;
  readonly walletAddress: string;
  readonly personality: Required<Personality>;
  readonly idea: NewIdea | null;
  /** Comments on an idea that the character likes, and on one that it does not. */
  readonly praise: string;
  readonly doubt: string;
}

export const CAST: readonly Character[] = [
  {
    name: 'Ada',
    walletAddress: `0x${'a1'.repeat(20)}`,
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
    walletAddress: `0x${'b2'.repeat(20)}`,
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
    walletAddress: `0x${'c3'.repeat(20)}`,
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
    walletAddress: `0x${'d4'.repeat(20)}`,
    personality: { loves: ['rivers', 'tools'], hates: ['hype'], expertise: ['ecology'], style: 'patient, asks first' },
    idea: {
      name: 'River Sensors',
      ticker: 'RIVER',
      description: 'Cheap open tools that listen to rivers, and proofs that nobody edited what they heard.',
    },
    praise: 'This would still be useful in ten years, and it starts small.',
    doubt: 'What does this leave behind when the money is gone?',
  },
  {
    name: 'Ezra',
    walletAddress: `0x${'e5'.repeat(20)}`,
    personality: {
      loves: ['open', 'rivers'],
      hates: ['waste'],
      expertise: ['budgets'],
      style: 'counts everything twice',
    },
    idea: null,
    praise: 'The figures hold. I added them up in both directions.',
    doubt: 'A budget with one number in it is a wish.',
  },
];

type Pitch = Pick<Idea, 'ideaId' | 'name' | 'description'>;

/** How well a character likes an idea: the words that it loves in it, minus the words that it hates. */
export function liking({ personality }: Character, { name, description }: Pitch): number {
  const text = `${name} ${description}`.toLowerCase();
  const count = (words: readonly string[]) => words.filter((word) => text.includes(word)).length;
  return count(personality.loves) - count(personality.hates);
}

/** All 10,000 bps, in proportion among the ideas that it likes; the remainder of the rounding abstains. */
export function allocationsOf(character: Character, ideas: readonly Pitch[]): readonly Allocation[] {
  const liked = ideas.map((idea) => ({ ideaId: idea.ideaId, weight: Math.max(0, liking(character, idea)) }));
  const total = liked.reduce((sum, { weight }) => sum + weight, 0);
  return liked
    .filter(({ weight }) => weight > 0)
    .map(({ ideaId, weight }) => ({ ideaId, bps: Math.floor((10_000 * weight) / total) }));
}

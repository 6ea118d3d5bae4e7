// The ideas of a chamber as its moves change them: the latest text alone, who withdrew, and the straw poll.
import type { MoveEvent } from '../src/vocabulary/events.ts';
import type { Millis, Stance } from '../src/vocabulary/values.ts';

export interface Idea {
  readonly ideaId: string;
  readonly slot: number;
  readonly ticker: string;
  /** Name and description are those of the latest version. */
  readonly name: string;
  readonly description: string;
  /** Which of the two the service has withheld. */
  readonly withheldTexts: readonly IdeaText[];
  readonly creatorDid: string;
  readonly creatorWallet: string;
  /** The events that made the versions: the proposal, then the amendments. */
  readonly versions: readonly [Version, ...Version[]];
  readonly isWithdrawn: boolean;
  /** The latest stance of each member, in the order of their first ones. */
  readonly stances: readonly StanceTaken[];
}

const IDEA_TEXTS = ['name', 'description'] as const;
export type IdeaText = (typeof IDEA_TEXTS)[number];

export interface Version {
  readonly eventId: number;
  readonly at: Millis;
}

export interface StanceTaken {
  readonly turnOrder: number;
  readonly stance: Stance;
  /** The version of the idea that the member spoke about. */
  readonly version: number;
}

/** How many members take each stance on the latest version, and how many spoke last about an earlier one. */
export type StanceCounts = Readonly<Record<Stance | 'outdated', number>>;

type EventOf<Type> = Extract<MoveEvent, { readonly type: Type }>;

const NONE_WITHHELD: Idea['withheldTexts'] = [];
const NO_STANCES: Idea['stances'] = [];

export function proposedIdea({ payload, did, withheld }: EventOf<'chamber.proposed'>, version: Version): Idea {
  const { accountEventId: _, ...idea } = payload;
  const withheldTexts = withheld === undefined ? NONE_WITHHELD : IDEA_TEXTS;
  return { ...idea, withheldTexts, creatorDid: did, versions: [version], isWithdrawn: false, stances: NO_STANCES };
}

export function amendedIdea(idea: Idea, { payload, withheld }: EventOf<'chamber.amended'>, version: Version): Idea {
  const { name = idea.name, description = idea.description } = payload;
  const isWithheld = (text: IdeaText) =>
    payload[text] === undefined ? idea.withheldTexts.includes(text) : withheld !== undefined;
  const withheldTexts = IDEA_TEXTS.filter(isWithheld);
  return { ...idea, name, description, withheldTexts, versions: [...idea.versions, version] };
}

/** The idea after a member has taken a stance. */
export function polledIdea(idea: Idea, taken: StanceTaken): Idea {
  const before = idea.stances.findIndex(({ turnOrder }) => turnOrder === taken.turnOrder);
  return { ...idea, stances: before < 0 ? [...idea.stances, taken] : idea.stances.with(before, taken) };
}

/** The ideas with one of them replaced; a lying service may name one that does not exist. */
export function withIdea(ideas: readonly Idea[], ideaId: string | null, change: (idea: Idea) => Idea): readonly Idea[] {
  return ideas.map((idea) => (idea.ideaId === ideaId ? change(idea) : idea));
}

export function latestVersion({ versions }: Pick<Idea, 'versions'>): number {
  return versions.length;
}

export function stanceCounts({ stances, versions }: Pick<Idea, 'stances' | 'versions'>): StanceCounts {
  const counts = { for: 0, against: 0, undecided: 0, outdated: 0 };
  for (const { stance, version } of stances) counts[version === versions.length ? stance : 'outdated']++;
  return counts;
}

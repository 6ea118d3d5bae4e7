// The ideas of a chamber: the latest text, whether the idea was withdrawn, and the straw poll.
import type { MoveEvent } from '../src/vocabulary/events.ts';
import type { Millis, Stance } from '../src/vocabulary/values.ts';
import { WITHHELD_TEXT } from '../src/vocabulary/withheld.ts';

export interface Idea {
  readonly ideaId: string;
  readonly slot: number;
  readonly ticker: string;
  /** Name and description of the latest version. */
  readonly name: string;
  readonly description: string;
  /** The texts of the idea that the service has withheld. */
  readonly withheldTexts: readonly IdeaText[];
  readonly creatorDid: string;
  readonly creatorWallet: string;
  /** The events that created the versions: the proposal, then the amendments. */
  readonly versions: readonly [Version, ...Version[]];
  readonly isWithdrawn: boolean;
  /** The latest stance of each member, ordered by the member's first stance. */
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
  /** The version of the idea that the stance is about. */
  readonly version: number;
}

/** The number of members per stance on the latest version, and of those whose latest stance is on an earlier version. */
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

/** Whether a text of the latest version is unknown. An auditor may know it from the original line. */
export function lacksText({ withheldTexts, name, description }: Idea): boolean {
  return withheldTexts.some((text) => (text === 'name' ? name === WITHHELD_TEXT : description === ''));
}

export function ideaWithStance(idea: Idea, taken: StanceTaken): Idea {
  const before = idea.stances.findIndex(({ turnOrder }) => turnOrder === taken.turnOrder);
  return { ...idea, stances: before < 0 ? [...idea.stances, taken] : idea.stances.with(before, taken) };
}

/** Returns the ideas with one of them replaced. A lying service may name an idea that does not exist. */
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

// A part of a chamber's transcript, arranged by idea: what it is, and what was said for it, against it and about it.
import type { ChamberView } from '../../projections/views.ts';
import type { TranscriptTurn } from '../client/forum-client.ts';

/** The member of a refinement by which a comment says where it stands. */
export const STANCES = ['for', 'against'] as const;

interface Comment {
  readonly by: string | null;
  readonly eventId: number;
  readonly text: string;
  readonly refinement?: string;
}

export interface IdeaArgument {
  /** null: about the chamber as a whole. */
  readonly ideaId: string | null;
  readonly ticker?: string;
  readonly by?: string | null;
  /** Name and description. */
  readonly proposal?: readonly string[];
  readonly for?: readonly Comment[];
  readonly against?: readonly Comment[];
  readonly comments?: readonly Comment[];
}

/** `chamber` has the ideas that the turns are about. */
export function byIdea(turns: readonly TranscriptTurn[], chamber: Pick<ChamberView, 'ideas'>): readonly IdeaArgument[] {
  const tickers = new Map(chamber.ideas.map(({ ideaId, ticker }) => [ideaId, ticker]));
  const ideas = new Map<string | null, IdeaArgument>();
  for (const { type, ideaId, eventId, agent, words } of turns) {
    const ticker = tickers.get(ideaId ?? '');
    const idea = ideas.get(ideaId) ?? { ideaId, ...(ticker !== undefined && { ticker }) };
    if (type === 'chamber.proposed') ideas.set(ideaId, { ...idea, by: agent, proposal: words });
    if (type !== 'chamber.debated') continue;
    const [text = '', refinement] = words;
    const comment = { by: agent, eventId, text, ...(refinement !== undefined && { refinement }) };
    const group = stanceOf(refinement) ?? 'comments';
    ideas.set(ideaId, { ...idea, [group]: [...(idea[group] ?? []), comment] });
  }
  return [...ideas.values()];
}

function stanceOf(refinement: string | undefined): (typeof STANCES)[number] | undefined {
  try {
    const { stance } = (JSON.parse(refinement ?? 'null') ?? {}) as { readonly stance?: unknown };
    return STANCES.find((known) => known === stance);
  } catch {
    // It was cut.
    return undefined;
  }
}

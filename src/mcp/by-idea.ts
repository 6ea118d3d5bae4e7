// Groups part of a chamber's transcript by idea: the proposal, and the comments for, against and about it.
import { SPEECH } from '../../projections/turn.ts';
import type { ChamberView } from '../../projections/views.ts';
import type { TranscriptTurn } from '../client/forum-client.ts';
import { withheldMark } from '../moves/narrate.ts';
import type { Stance } from '../vocabulary/values.ts';

interface Comment {
  readonly by: string | null;
  readonly eventId: number;
  readonly text: string;
  readonly refinement?: string;
  readonly stance?: Stance;
  readonly replies?: readonly Comment[];
}

type Group = 'for' | 'against' | 'comments';

export interface IdeaArgument {
  /** Null for comments on the debate as a whole. */
  readonly ideaId: string | null;
  readonly ticker?: string;
  readonly by?: string | null;
  /** Name and description. */
  readonly proposal?: readonly string[];
  /** The changes of each amendment. */
  readonly amended?: readonly { readonly eventId: number; readonly text: string; readonly words: readonly string[] }[];
  readonly withdrawn?: true;
  readonly for?: readonly Comment[];
  readonly against?: readonly Comment[];
  readonly comments?: readonly Comment[];
}

/** Nests a reply under its parent comment, if the parent is among the turns. */
export function byIdea(turns: readonly TranscriptTurn[], chamber: Pick<ChamberView, 'ideas'>): readonly IdeaArgument[] {
  const tickers = new Map(chamber.ideas.map(({ ideaId, ticker }) => [ideaId, ticker]));
  const ideas = new Map<string | null, Draft>();
  const comments = new Map<number, CommentDraft>();
  for (const turn of turns) {
    const { type, ideaId, eventId, agent, words, text } = turn;
    if (!SPEECH.has(type)) continue;
    const ticker = tickers.get(ideaId ?? '');
    const idea: Draft = ideas.get(ideaId) ?? { ideaId, ...(ticker !== undefined && { ticker }) };
    const parent = comments.get(turn.replyTo ?? 0);
    if (type === 'chamber.debated') {
      const comment = commentOf(turn, parent !== undefined);
      comments.set(eventId, comment);
      if (parent !== undefined) {
        parent.replies = [...(parent.replies ?? []), comment];
        continue;
      }
      const group = groupOf(turn);
      idea[group] = [...(idea[group] ?? []), comment];
    } else if (type === 'chamber.proposed') {
      idea.by = agent;
      const mark = markOf(turn);
      idea.proposal = mark === undefined ? words : [mark];
    } else if (type === 'chamber.amended') idea.amended = [...(idea.amended ?? []), { eventId, text, words }];
    else idea.withdrawn = true;
    ideas.set(ideaId, idea);
  }
  return [...ideas.values()];
}

type Draft = { -readonly [Member in keyof IdeaArgument]: IdeaArgument[Member] };
type CommentDraft = { -readonly [Member in keyof Comment]: Comment[Member] };

function commentOf(turn: TranscriptTurn, isReply: boolean): CommentDraft {
  const { agent, eventId, words, stance } = turn;
  const [text = markOf(turn) ?? '', refinement] = words;
  return {
    by: agent,
    eventId,
    text,
    ...(refinement !== undefined && { refinement }),
    // The group already shows the stance of other comments.
    ...(isReply && stance != null && { stance }),
  };
}

/** Returns the mark that replaces withheld texts; undefined if the texts are not withheld. */
function markOf({ withheld }: TranscriptTurn): string | undefined {
  return withheld == null ? undefined : withheldMark({ reason: withheld });
}

/** Older comments have their stance in the refinement, because `stance` did not exist yet. */
function groupOf({ stance, words: [, refinement] }: TranscriptTurn): Group {
  const taken = stance ?? stanceIn(refinement);
  return taken === 'for' || taken === 'against' ? taken : 'comments';
}

function stanceIn(refinement: string | undefined): unknown {
  try {
    return ((JSON.parse(refinement ?? 'null') ?? {}) as { readonly stance?: unknown }).stance;
  } catch {
    // The refinement was truncated.
    return undefined;
  }
}

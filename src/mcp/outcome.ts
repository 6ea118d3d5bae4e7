// What a chamber has come to, from the moment on when no move can change it: the chain may still be awaited.
import type { IdeaView } from '../../projections/views.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { visibleLine } from '../vocabulary/visible.ts';

/** The rest are only counted. */
const IDEAS_MAX = 20;

export async function outcomeOf(forum: ForumClient, chamberId: number, signal: AbortSignal) {
  const [{ minBackersForGraduation, merkleRoot, commitStatus }, ideas, { committed, revealed }] = await Promise.all([
    forum.chamber(chamberId, { signal }),
    forum.chamberIdeas(chamberId, { signal }),
    forum.allocations(chamberId, { signal }),
  ]);
  const ranked = [...ideas].sort((one, other) => other.totalBps - one.totalBps || one.slot - other.slot);
  return {
    chamberId,
    ideas: ranked.slice(0, IDEAS_MAX).map((idea) => ideaOutcome(idea, minBackersForGraduation)),
    ...(ranked.length > IDEAS_MAX && { ideasLeftOut: ranked.length - IDEAS_MAX }),
    committed: committed.length,
    revealed: revealed.length,
    chain: commitStatus,
    ...(merkleRoot !== null && { merkleRoot }),
  };
}

function ideaOutcome({ ideaId, ticker, name, backers, totalBps, tokenAddress, deployReason }: IdeaView, min: number) {
  return {
    ideaId,
    ticker,
    name: visibleLine(name),
    backers,
    totalBps,
    graduated: backers >= min,
    ...(tokenAddress !== null && { tokenAddress }),
    ...(deployReason !== null && { failure: visibleLine(deployReason) }),
  };
}

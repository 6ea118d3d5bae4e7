// A chamber's outcome, for models. The tally is available once no move can change it, the tokens and the root once they are on the chain.
import type { OutcomeIdea, OutcomeView } from '../../projections/outcome.ts';
import { ClientError } from '../client/error.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { aliasOf, linksOf } from './names.ts';

/** Beyond this number, ideas are only counted. */
const IDEAS_MAX = 20;

/** Returns the outcome, with ideas ordered by share. `waitsFor` is present until the root and tokens are on the chain. */
export async function chamberOutcome(forum: ForumClient, chamberId: number, signal: AbortSignal) {
  try {
    return {
      ...settledOutcome(await forum.outcome(chamberId, { signal })),
      ...linksOf(forum.service.baseUrl, chamberId),
    };
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'FORUM_ERR_CONFLICT') throw error;
    const tally = await readTally(forum, chamberId, signal);
    return { ...tally, waitsFor: error.detail, ...linksOf(forum.service.baseUrl, chamberId) };
  }
}

function settledOutcome({ chamberId, members, ideas, abstainedBps, committed, revealed, ...chain }: OutcomeView) {
  const { merkleRoot, committedTxHash } = chain;
  const turns = { members: members.map(({ did }) => did) };
  return { chamberId, ...ranking(ideas, turns), abstainedBps, committed, revealed, merkleRoot, committedTxHash };
}

async function readTally(forum: ForumClient, chamberId: number, signal: AbortSignal) {
  const [chamber, ideas, { committed, revealed }] = await Promise.all([
    forum.chamber(chamberId, { signal }),
    forum.chamberIdeas(chamberId, { signal }),
    forum.allocations(chamberId, { signal }),
  ]);
  const results = ideas.map(({ creatorDid, deployReason, ...idea }) => {
    const graduated = idea.backers >= chamber.minBackersForGraduation;
    return { ...idea, proposer: creatorDid, graduated, failure: deployReason };
  });
  return { chamberId, ...ranking(results, chamber), committed: committed.length, revealed: revealed.length };
}

type RankedIdea = Omit<OutcomeIdea, 'shareBps' | 'backersMissing'>;

function ranking(ideas: readonly RankedIdea[], chamber: Parameters<typeof aliasOf>[0]) {
  // The sort is stable: ideas with equal shares stay in the order of proposal.
  const ranked = [...ideas].sort((one, other) => other.totalBps - one.totalBps);
  const shown = ranked.slice(0, IDEAS_MAX).map(({ ideaId, ticker, name, proposer, backers, totalBps, ...idea }) => {
    const { graduated, tokenAddress, failure } = idea;
    return {
      ...{ ideaId, ticker, name: visibleLine(name), by: aliasOf(chamber, proposer), backers, totalBps, graduated },
      ...(tokenAddress !== null && { tokenAddress }),
      ...(failure !== null && { failure: visibleLine(failure) }),
    };
  });
  return { ideas: shown, ...(ranked.length > IDEAS_MAX && { ideasLeftOut: ranked.length - IDEAS_MAX }) };
}

// Proposes an idea. Succeeds if the agent already has an equal idea; if the ticker is taken, the error names the owner of the ticker.
import type { Agent, NewIdea } from '../client/agent.ts';
import { ClientError } from '../client/error.ts';
import type { Step } from './acting-calls.ts';
import { aliasOf } from './names.ts';

interface ProposeOptions {
  readonly idea: Required<NewIdea>;
  readonly step: Step;
}

export async function proposeOnce(agent: Agent, chamberId: number, { idea, step }: ProposeOptions) {
  try {
    const { ideaId, ticker } = await step('propose', (options) => agent.propose(chamberId, idea, options));
    return { ideaId, ticker };
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'FORUM_ERR_CONFLICT') throw error;
    return await existingIdea(agent, chamberId, { idea, error });
  }
}

async function existingIdea(
  agent: Agent,
  chamberId: number,
  { idea, error }: { readonly idea: Required<NewIdea>; readonly error: ClientError },
) {
  const ideas = await agent.forum.chamberIdeas(chamberId);
  const taken = ideas.find(({ ticker }) => ticker.toLowerCase() === idea.ticker.toLowerCase());
  // The conflict has another cause: the chamber has no room for ideas, or the turn has no moves left.
  if (taken === undefined) throw error;
  const { ideaId, ticker, creatorDid, withdrawn } = taken;
  const isOwn = creatorDid === agent.did;
  const isEqual = ticker === idea.ticker && taken.name === idea.name && taken.description === idea.description;
  if (isOwn && isEqual && !withdrawn) return { ideaId, ticker, repeated: true } as const;
  const whose = isOwn
    ? `your own ${ideaId}${withdrawn ? ', which you have withdrawn' : ', with another name or description: amend it in DEBATE'}`
    : `${ideaId} of ${aliasOf(await agent.forum.chamber(chamberId), creatorDid)}`;
  throw new ClientError('FORUM_ERR_CONFLICT', `the ticker ${ticker} is taken by ${whose}`, { status: error.status });
}

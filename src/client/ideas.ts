// Finds ideas by id or by ticker (case-insensitive).
import type { ChamberView } from '../../projections/views.ts';
import type { Phase } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

const IDEAS_NAMED_MAX = 20;

type Ideas = Pick<ChamberView, 'chamberId' | 'phase' | 'ideas'>;

/**
 * Returns the id of the idea with this id or ticker; ids take precedence. If there is none, throws FORUM_ERR_PHASE if the chamber is in
 * none of the `expected` phases, otherwise CLIENT_ERR_INPUT, which lists the chamber's ideas.
 */
export function ideaIdOf(chamber: Ideas, named: string, ...expected: readonly Phase[]): string {
  return findIdea(chamber, named, expected).ideaId;
}

/** Like ideaIdOf, for an allocation: throws CLIENT_ERR_INPUT for a withdrawn idea, because the service would reject the reveal. */
export function backedIdeaId(chamber: Ideas, named: string): string {
  const { ideaId, ticker, withdrawn } = findIdea(chamber, named, ['ALLOCATE_COMMIT']);
  if (!withdrawn) return ideaId;
  throw new ClientError(
    'CLIENT_ERR_INPUT',
    `${ideaId} (${ticker}) was withdrawn: an allocation that names it can't be revealed`,
  );
}

function findIdea(
  { chamberId, phase, ideas }: Ideas,
  named: string,
  expected: readonly Phase[],
): ChamberView['ideas'][number] {
  const ticker = named.toLowerCase();
  const found =
    ideas.find(({ ideaId }) => ideaId === named) ?? ideas.find((idea) => idea.ticker.toLowerCase() === ticker);
  if (found !== undefined) return found;
  if (!expected.includes(phase)) throw phaseError(expected, phase);
  const list = ideas.slice(0, IDEAS_NAMED_MAX).map(({ ideaId, ticker }) => `${ideaId} (${ticker})`);
  const more = ideas.length > IDEAS_NAMED_MAX ? ` and ${ideas.length - IDEAS_NAMED_MAX} more` : '';
  const known = ideas.length === 0 ? 'it has none' : `its ideas are ${list.join(', ')}${more}`;
  throw new ClientError('CLIENT_ERR_INPUT', `idea ${named} not found in chamber ${chamberId}: ${known}`);
}

/** Returns the same error as the service would. */
export function phaseError(expected: readonly Phase[], actual: Phase): ClientError {
  return new ClientError('FORUM_ERR_PHASE', `expected phase ${expected.join(' or ')}, actual phase ${actual}`);
}

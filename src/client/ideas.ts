// Ideas as people and models name them: by id, or by ticker in any case.
import type { ChamberView } from '../../projections/views.ts';
import type { Phase } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

/** Longer lists are cut. */
const IDEAS_NAMED_MAX = 20;

/**
 * The id of the idea that has this id or ticker; an id comes first. Throws FORUM_ERR_PHASE outside of `expected`, because ideas are
 * of no use before, and CLIENT_ERR_INPUT, which names the chamber's ideas.
 */
export function ideaIdOf(
  { chamberId, phase, ideas }: Pick<ChamberView, 'chamberId' | 'phase' | 'ideas'>,
  named: string,
  expected: Phase,
): string {
  const ticker = named.toLowerCase();
  const found =
    ideas.find(({ ideaId }) => ideaId === named) ?? ideas.find((idea) => idea.ticker.toLowerCase() === ticker);
  if (found !== undefined) return found.ideaId;
  if (phase !== expected) throw phaseError(expected, phase);
  const list = ideas.slice(0, IDEAS_NAMED_MAX).map(({ ideaId, ticker }) => `${ideaId} (${ticker})`);
  const more = ideas.length > IDEAS_NAMED_MAX ? ` and ${ideas.length - IDEAS_NAMED_MAX} more` : '';
  const known = ideas.length === 0 ? 'it has none' : `its ideas are ${list.join(', ')}${more}`;
  throw new ClientError('CLIENT_ERR_INPUT', `idea ${named} not found in chamber ${chamberId}: ${known}`);
}

/** The same words as the service's. */
export function phaseError(expected: Phase, actual: Phase): ClientError {
  return new ClientError('FORUM_ERR_PHASE', `expected phase ${expected}, actual phase ${actual}`);
}

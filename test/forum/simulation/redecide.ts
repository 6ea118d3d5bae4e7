// Decides a command again, with the pure decision functions of moves and with states folded from lines.
import type { AccountState } from '../../../projections/account.ts';
import type { ChamberState } from '../../../projections/chamber.ts';
import { changePersonality } from '../../../src/moves/change-personality.ts';
import { createChamber } from '../../../src/moves/create-chamber.ts';
import { type ChamberLimits, parseBody } from '../../../src/moves/move.ts';
import { isUnchanged, parseRegistration, register, repeatsRegistration } from '../../../src/moves/register.ts';
import { type AnyChamberMove, type ChamberMoveOperation, chamberMoves } from '../../../src/moves/registry.ts';
import { keyRetired, retire } from '../../../src/moves/retire.ts';
import { type ErrorCode, ForumError } from '../../../src/vocabulary/errors.ts';
import type { Millis, PinnedKeys } from '../../../src/vocabulary/values.ts';
import { noChain } from '../../kit/given.ts';
import type { AskedCommand } from './history.ts';

export interface Situation {
  readonly chamber: ChamberState | null;
  readonly account: AccountState | null;
  readonly openChambers: number;
  readonly now: Millis;
  readonly limits: ChamberLimits;
  /** Returns the data of an earlier event of the chamber. */
  readonly takesReplies?: (eventId: number) => boolean;
  /** The keys that a creation records. */
  readonly serviceKeys?: PinnedKeys | undefined;
}

export type Decision =
  | { readonly is: 'event'; readonly payload: unknown }
  | { readonly is: 'unchanged' }
  | { readonly is: 'rejected'; readonly code: ErrorCode };

export function redecide(asked: AskedCommand, situation: Situation): Decision {
  try {
    return decide(asked, situation);
  } catch (error) {
    if (error instanceof ForumError) return { is: 'rejected', code: error.code };
    throw error;
  }
}

function decide({ operation, body: json, did, signature }: AskedCommand, situation: Situation): Decision {
  const { chamber, account, openChambers, now, limits, serviceKeys, takesReplies = () => false } = situation;
  const isRetry = operation === 'register' && signature === null && account !== null;
  const isRetired = account !== null && account.retirement !== null;
  if (isRetired && operation !== 'retire' && !(isRetry && repeatsRegistration({ json }, account)))
    throw keyRetired(account.did, account.retirement);
  if (operation === 'register') {
    const context = { state: account, isSigned: signature !== null, services: [], readChain: noChain };
    const parsed = parseRegistration({ json }, context);
    if (isUnchanged(parsed, context)) return { is: 'unchanged' };
    return { is: 'event', payload: register.decide(parsed, context) };
  }
  // There is no state if the lines of a stream do not form a chain, which is reported elsewhere.
  if (account === null) throw new ForumError('FORUM_ERR_SIGNATURE', `${did} has no account`);
  if (operation === 'changePersonality') {
    const payload = changePersonality.decide(parseBody(changePersonality, { json }), { state: account });
    return { is: 'event', payload };
  }
  if (operation === 'retire') return { is: 'event', payload: retire.decide({}, { state: account }) };
  if (operation === 'createChamber') {
    const context = { now, account, openChambers, limits, serviceKeys, readChain: noChain };
    return { is: 'event', payload: createChamber.decide(parseBody(createChamber, { json }), context) };
  }
  if (chamber === null) throw new ForumError('FORUM_ERR_NOT_FOUND', 'chamber not found');
  const move: AnyChamberMove = chamberMoves[operation as ChamberMoveOperation];
  const asked = { readChain: noChain, takesReplies };
  const context = { state: chamber, did: did as string, account, now, limits, ...asked };
  return { is: 'event', payload: move.decide(parseBody(move, { json }), context) };
}

// Rules shared by several moves, in the order of the checks: phase, membership, turn, history, and the age of a signature.
import type { ChamberState } from '../../projections/chamber.ts';
import type { Idea } from '../../projections/ideas.ts';
import { isClosed, phaseAt, phaseEnd } from '../../projections/phase.ts';
import { lacksMembers } from '../../projections/phase-ends.ts';
import { turnAt, turnEnd, turnHolderAt } from '../../projections/turn.ts';
import { conflict, ForumError } from '../vocabulary/errors.ts';
import { type Hex, type Millis, type Phase, toTimestamp } from '../vocabulary/values.ts';
import type { DecisionContext, SeenEvent } from './move.ts';

/** Checks the phase (specification, States and transitions, rule 1); throws FORUM_ERR_PHASE. */
export function requirePhase({ state, now }: DecisionContext, ...expected: readonly Phase[]): void {
  const actual = phaseAt(state, now);
  const isOver = actual === 'ALLOCATE_REVEAL' && isClosed(state, now);
  if (expected.includes(actual) && !isOver) return;
  const end = phaseEnd(state, actual);
  if (expected.includes(actual) && end !== null) {
    throw new ForumError(
      'FORUM_ERR_PHASE',
      `expected phase ${actual} before ${toTimestamp(end)}, actual phase ${actual} after its end: ${reasonOfEnd(state)}`,
    );
  }
  const until = isOver
    ? `${state.rounds === null && !lacksMembers(state) ? ', past its deadline' : ', which has ended'}: ${reasonOfEnd(state)}`
    : end === null
      ? ''
      : `, which ends at ${toTimestamp(end)}`;
  throw new ForumError('FORUM_ERR_PHASE', `expected phase ${expected.join(' or ')}, actual phase ${actual}${until}`);
}

/** Returns why no move is accepted after the reveal phase. */
function reasonOfEnd(state: ChamberState): string {
  if (!lacksMembers(state)) return 'the chamber is being committed';
  return `the chamber did not go ahead: ${state.members.length} of at least ${state.minMembers} members had joined when LOBBY ended`;
}

/** Throws FORUM_ERR_MEMBER. */
export function requireMember({ state, did }: DecisionContext): void {
  if (state.members.includes(did)) return;
  throw new ForumError('FORUM_ERR_MEMBER', `${did} is not a member of chamber ${state.chamberId}`);
}

/** Throws FORUM_ERR_FORBIDDEN; `act` names the action that only the creator may take. */
export function requireCreator({ state, did }: DecisionContext, act: string): void {
  if (did === state.creatorDid) return;
  const detail = `only the creator of chamber ${state.chamberId} may ${act}: ${state.creatorDid}`;
  throw new ForumError('FORUM_ERR_FORBIDDEN', detail);
}

/** Checks phase, membership and turn (specification, States and transitions, rule 2); throws FORUM_ERR_TURN. */
export function requireTurn(context: DecisionContext, ...expected: readonly Phase[]): void {
  requirePhase(context, ...expected);
  requireMember(context);
  const { state, did, now } = context;
  const holder = turnHolderAt(state, now);
  if (holder === did) return;
  const until = turnEnd(state, now) ?? phaseEnd(state, phaseAt(state, now));
  const time = until === null ? '' : ` until ${toTimestamp(until)}, or`;
  throw new ForumError('FORUM_ERR_TURN', `it is the turn of ${holder}${time} until it passes`);
}

export function requireIdea({ chamberId, ideas }: ChamberState, ideaId: string): Idea {
  const found = ideas.find((idea) => idea.ideaId === ideaId);
  if (found !== undefined) return found;
  throw new ForumError('FORUM_ERR_NOT_FOUND', `ideaId: ${JSON.stringify(ideaId)} not found in chamber ${chamberId}`);
}

/**
 * Returns an idea that the caller has proposed and not withdrawn. Throws FORUM_ERR_NOT_FOUND, FORUM_ERR_FORBIDDEN or FORUM_ERR_CONFLICT.
 */
export function requireOwnIdea({ state, did }: DecisionContext, ideaId: string, act: string): Idea {
  const idea = requireIdea(state, ideaId);
  if (idea.creatorDid !== did)
    throw new ForumError('FORUM_ERR_FORBIDDEN', `only the proposer of ${ideaId} may ${act} it: ${idea.creatorDid}`);
  requireNotWithdrawn(idea);
  return idea;
}

/** Throws FORUM_ERR_CONFLICT. */
export function requireNotWithdrawn({ ideaId, ticker, isWithdrawn }: Idea): void {
  if (isWithdrawn) throw conflict(`${ideaId} (${ticker}) was withdrawn`);
}

/** If the chamber has `movesPerTurn`, checks that the turn at `now` has a move left; throws FORUM_ERR_CONFLICT. */
export function requireMoveLeft({ state, now }: DecisionContext): void {
  const { movesPerTurn } = state;
  if (movesPerTurn === null || (turnAt(state, now)?.moves ?? 0) < movesPerTurn) return;
  const spent = movesPerTurn === 1 ? 'the one move' : `all ${movesPerTurn} moves`;
  throw conflict(`you have used ${spent} of this turn: pass`);
}

/**
 * Checks the history that the agent has seen. `leaf` is the chamber's leaf of that event, null if there is none. Throws FORUM_ERR_HISTORY.
 */
export function requireHistory(seen: SeenEvent | undefined, leaf: Hex | null): void {
  if (seen === undefined || seen.leaf.toLowerCase() === leaf) return;
  const here = leaf === null ? 'does not exist here' : `has the leaf ${leaf} here`;
  throw new ForumError(
    'FORUM_ERR_HISTORY',
    `seen: event ${seen.eventId} ${here}, but the leaf ${seen.leaf} in the history that you saw: keep both as evidence`,
    { history: { eventId: seen.eventId, seen: seen.leaf, leaf } },
  );
}

export interface SignatureAges {
  readonly maxAgeSeconds: number;
  readonly maxSkewSeconds: number;
}

/** The times in a signature, in seconds since 1970 (RFC 9421, section 2.3). */
export interface SignatureTimes {
  readonly created: number;
  readonly expires?: number;
}

/** Rejects a signature that is too old, from the future or expired at `now`; throws FORUM_ERR_SIGNATURE. */
export function requireFresh({ created, expires }: SignatureTimes, now: Millis, ages: SignatureAges): void {
  const problem = ageProblem(created * 1000, now, ages);
  if (problem !== undefined) throw stale(`created ${problem}`, now);
  if (expires !== undefined && now >= expires * 1000) throw stale('the signature has expired', now);
}

/** Returns why a signature of that time is not accepted at `now`; undefined if it is. */
export function ageProblem(signedAt: Millis, now: Millis, ages: SignatureAges): string | undefined {
  const age = now - signedAt;
  if (age > ages.maxAgeSeconds * 1000)
    return `is ${age / 1000} s old, but at most ${ages.maxAgeSeconds} s are accepted`;
  if (-age <= ages.maxSkewSeconds * 1000) return undefined;
  return `is ${-age / 1000} s ahead, but at most ${ages.maxSkewSeconds} s are accepted`;
}

function stale(reason: string, now: Millis): ForumError {
  const serviceTime = toTimestamp(now);
  return new ForumError('FORUM_ERR_SIGNATURE', `age: ${reason} (service time ${serviceTime})`, {
    step: 'age',
    serviceTime,
  });
}

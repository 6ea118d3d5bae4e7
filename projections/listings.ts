// Rows of the read model: the data that lists and lookups need, without folding a chamber.
import { DEADLINES, type Millis } from '../src/vocabulary/values.ts';
import type { ChamberState } from './chamber.ts';
import { graduates, tallies, undecidedGraduates } from './graduation.ts';
import { type PhaseEnds, phaseBy, phaseEnd } from './phase.ts';
import type { Turns } from './turn.ts';
import { deadlinesView, type IdeaView, ideaView, type ListedChamber, timeView } from './views.ts';

export interface ChamberListing {
  readonly kind: 'chamber';
  readonly chamberId: number;
  readonly name: string;
  readonly creatorDid: string;
  readonly deadlines: ChamberState['deadlines'];
  readonly ends: PhaseEnds;
  readonly memberCount: number;
  readonly turnSeconds: number | null;
  readonly rounds: ChamberState['rounds'];
  readonly movesPerTurn: number | null;
  readonly maxMembers: number | null;
  readonly minMembers: number | null;
  /** Whether the chamber has admission rules. */
  readonly isRestricted: boolean;
  readonly isCommitted: boolean;
  /** Whether the relayer has finished: the chamber is committed, and every graduated idea is deployed or has failed. */
  readonly isSettled: boolean;
}

export interface IdeaListing {
  readonly kind: 'idea';
  readonly proposedAt: Millis;
  readonly idea: IdeaView;
}

/** An agent in a chamber that it created or joined. */
export interface MemberListing {
  readonly kind: 'member';
  readonly chamberId: number;
  readonly did: string;
  /** Null for a creator that has not joined. */
  readonly turnOrder: number | null;
  readonly hasCommitted: boolean;
  readonly hasRevealed: boolean;
}

/** The state of the turns after the moves of a turn phase. */
export interface TurnListing {
  readonly kind: 'turns';
  readonly chamberId: number;
  readonly turns: Turns;
}

export type Listing = ChamberListing | IdeaListing | MemberListing | TurnListing;

/** Returns the rows that an event changed, given the states before and after the event. */
export function listingsOf(before: ChamberState | null, after: ChamberState): readonly Listing[] {
  const rows: Listing[] = [];
  const hasChanged = before?.members !== after.members || before.settlement !== after.settlement;
  const { ends } = after;
  const haveEndsChanged = before?.ends !== ends && DEADLINES.some((name) => before?.ends[name] !== ends[name]);
  if (hasChanged || haveEndsChanged) rows.push(chamberListing(after));
  if (before !== null && before.turns !== after.turns) {
    rows.push({ kind: 'turns', chamberId: after.chamberId, turns: after.turns });
  }
  // An event changes at most one member.
  if (before === null) rows.push(memberListing(after, after.creatorDid));
  else if (before.members !== after.members) rows.push(memberListing(after, after.members.at(-1)));
  else if (before.commitments !== after.commitments)
    rows.push(memberListing(after, [...after.commitments.keys()].at(-1)));
  else if (before.reveals !== after.reveals) rows.push(memberListing(after, [...after.reveals.keys()].at(-1)));
  const changed = before === null ? NONE : changedIdeas(before, after);
  if (changed.size === 0) return rows;
  const byIdea = after.reveals.size === 0 ? undefined : tallies(after);
  const graduated = after.settlement.committed === null ? [] : graduates(after);
  for (const idea of after.ideas) {
    if (!changed.has(idea.ideaId)) continue;
    const view = ideaView(after, idea, byIdea?.get(idea.ideaId), graduated.includes(idea));
    rows.push({ kind: 'idea', proposedAt: idea.versions[0].at, idea: view });
  }
  return rows;
}

function memberListing(state: ChamberState, did = ''): MemberListing {
  const turnOrder = state.members.indexOf(did);
  return {
    kind: 'member',
    chamberId: state.chamberId,
    did,
    turnOrder: turnOrder < 0 ? null : turnOrder,
    hasCommitted: state.commitments.has(did),
    hasRevealed: state.reveals.has(did),
  };
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the ideas whose rows may differ: new and changed ideas, ideas in a new reveal, and ideas whose deployment advanced. */
function changedIdeas(before: ChamberState, after: ChamberState): ReadonlySet<string> {
  if (before.ideas === after.ideas && before.reveals === after.reveals && before.settlement === after.settlement) {
    return NONE;
  }
  const changed = new Set<string>();
  const isNewlyCommitted = before.settlement.committed !== after.settlement.committed;
  for (const [index, idea] of after.ideas.entries()) {
    if (isNewlyCommitted || before.ideas[index] !== idea) changed.add(idea.ideaId);
  }
  if (before.reveals !== after.reveals) {
    for (const [did, { allocations }] of after.reveals) {
      if (!before.reveals.has(did)) for (const { ideaId } of allocations) changed.add(ideaId);
    }
  }
  for (const [ideaId, deployment] of after.settlement.deployments) {
    if (before.settlement.deployments.get(ideaId) !== deployment) changed.add(ideaId);
  }
  return changed;
}

/** Whether the chamber is over: committed, and every graduated idea deployed or failed. */
export function isSettled(state: ChamberState): boolean {
  return state.settlement.committed !== null && undecidedGraduates(state).length === 0;
}

function chamberListing(state: ChamberState): ChamberListing {
  return {
    kind: 'chamber',
    chamberId: state.chamberId,
    name: state.name,
    creatorDid: state.creatorDid,
    deadlines: state.deadlines,
    ends: state.ends,
    memberCount: state.members.length,
    turnSeconds: state.turnSeconds,
    rounds: state.rounds,
    movesPerTurn: state.movesPerTurn,
    isRestricted: state.admission !== null,
    isCommitted: state.settlement.committed !== null,
    isSettled: isSettled(state),
    maxMembers: state.maxMembers,
    minMembers: state.minMembers,
  };
}

/** Returns an item of GET /chambers?ends=1. */
export function chamberItemView(listing: ChamberListing, now: Millis): ListedChamber {
  const phase = phaseBy(listing.ends, listing.isCommitted, now);
  return {
    chamberId: listing.chamberId,
    phase,
    name: listing.name,
    deadlines: deadlinesView(listing.deadlines),
    memberCount: listing.memberCount,
    phaseEndsAt: timeView(phaseEnd(listing, phase)),
  };
}

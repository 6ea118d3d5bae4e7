// Rows of the derived tables: what lists and look-ups need without folding a chamber. Rebuilt from the log they are the same.
import type { ChamberEvent } from '../src/vocabulary/events.ts';
import { unreachable } from '../src/vocabulary/unreachable.ts';
import type { DeadlineName, Millis } from '../src/vocabulary/values.ts';
import { graduates } from './allocations.ts';
import type { ChamberState } from './chamber.ts';
import { deploymentOf } from './settlement.ts';
import { type IdeaView, ideaViews } from './views.ts';

export interface ChamberListing {
  readonly table: 'chambers';
  readonly chamberId: number;
  readonly name: string;
  readonly creatorDid: string;
  readonly deadlines: Readonly<Record<DeadlineName, Millis>>;
  readonly memberCount: number;
  readonly isCommitted: boolean;
  /** Whether the relayer has nothing left to do: committed, and every graduate deployed or failed. */
  readonly isSettled: boolean;
}

export interface IdeaListing {
  readonly table: 'ideas';
  readonly proposedAt: Millis;
  readonly idea: IdeaView;
}

export type Listing = ChamberListing | IdeaListing;

/** The rows that an event changes, given the state after it. */
export function listingsOf(event: ChamberEvent, state: ChamberState): readonly Listing[] {
  switch (event.type) {
    case 'chamber.created':
    case 'chamber.joined':
      return [chamberListing(state)];
    case 'chamber.proposed':
    case 'relay.deploy_submitted':
      return ideaListings(state, new Set([event.payload.ideaId]));
    case 'allocation.revealed':
      return ideaListings(state, new Set(event.payload.allocations.map((allocation) => allocation.ideaId)));
    case 'chamber.committed':
      return [chamberListing(state), ...ideaListings(state, new Set(state.ideas.map((idea) => idea.ideaId)))];
    case 'idea.deployed':
    case 'idea.deploy_failed':
      return [chamberListing(state), ...ideaListings(state, new Set([event.payload.ideaId]))];
    case 'chamber.debated':
    case 'chamber.passed':
    case 'allocation.committed':
    case 'relay.commit_submitted':
      return [];
    default:
      return unreachable(event);
  }
}

function chamberListing(state: ChamberState): ChamberListing {
  return {
    table: 'chambers',
    chamberId: state.chamberId,
    name: state.name,
    creatorDid: state.creatorDid,
    deadlines: state.deadlines,
    memberCount: state.members.length,
    isCommitted: state.settlement.committed !== null,
    isSettled: isSettled(state),
  };
}

function isSettled(state: ChamberState): boolean {
  if (state.settlement.committed === null) return false;
  return graduates(state).every((idea) => deploymentOf(state.settlement, idea.ideaId).outcome !== null);
}

function ideaListings(state: ChamberState, ideaIds: ReadonlySet<string>): readonly IdeaListing[] {
  return ideaViews(state)
    .filter((idea) => ideaIds.has(idea.ideaId))
    .map((idea) => ({ table: 'ideas', proposedAt: state.ideas[idea.slot - 1]?.proposedAt ?? 0, idea }));
}

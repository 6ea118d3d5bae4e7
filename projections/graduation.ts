// Computes the backers and shares of each idea from the allocations, and which ideas graduate.
import type { ChamberState } from './chamber.ts';
import type { Idea } from './ideas.ts';
import { deploymentOf } from './settlement.ts';

export interface Tally {
  /** The number of members who revealed bps > 0 for the idea. */
  readonly backers: number;
  readonly totalBps: number;
}

const NO_BACKERS: Tally = { backers: 0, totalBps: 0 };

/** Returns the tally of every idea by ideaId. */
export function tallies(state: ChamberState): ReadonlyMap<string, Tally> {
  const byIdea = new Map(state.ideas.map((idea) => [idea.ideaId, NO_BACKERS]));
  for (const { allocations } of state.reveals.values()) {
    for (const { ideaId, bps } of allocations) {
      const { backers, totalBps } = byIdea.get(ideaId) ?? NO_BACKERS;
      byIdea.set(ideaId, { backers: backers + (bps > 0 ? 1 : 0), totalBps: totalBps + bps });
    }
  }
  return byIdea;
}

/** Returns the ideas with at least minBackersForGraduation backers, by slot. */
export function graduates(state: ChamberState): readonly Idea[] {
  const byIdea = tallies(state);
  return state.ideas.filter((idea) => (byIdea.get(idea.ideaId) ?? NO_BACKERS).backers >= state.minBackersForGraduation);
}

/** Returns the graduated ideas whose deployment has no recorded result yet, in the order of the proposals. */
export function undecidedGraduates(state: ChamberState): readonly Idea[] {
  return graduates(state).filter(({ ideaId }) => deploymentOf(state.settlement, ideaId).outcome === null);
}

/** Whether an idea graduates; does not tally the other ideas. */
export function isGraduate({ reveals, minBackersForGraduation }: ChamberState, ideaId: string): boolean {
  let backers = 0;
  for (const { allocations } of reveals.values()) {
    if (allocations.some((allocation) => allocation.ideaId === ideaId && allocation.bps > 0)) backers++;
  }
  return backers >= minBackersForGraduation;
}

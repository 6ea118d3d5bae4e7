// Computes the result of a chamber (GET /chambers/:id/outcome) as a pure function of the chamber's lines: anybody who has the lines can
// produce the same text, byte for byte.
import { canonicalJson } from '../src/vocabulary/json.ts';
import { BPS_TOTAL, type Hex, type Millis, toTimestamp } from '../src/vocabulary/values.ts';
import type { ChamberState, Seat } from './chamber.ts';
import { graduates, tallies, undecidedGraduates } from './graduation.ts';
import { latestVersion } from './ideas.ts';
import { isClosed, phaseAt } from './phase.ts';
import { knownEnds, lacksMembers } from './phase-ends.ts';
import { type Committed, deploymentOf, isDeployed } from './settlement.ts';

export interface OutcomeView {
  readonly chamberId: number;
  readonly name: string;
  readonly topic: string | null;
  readonly createdBy: string;
  /** Whether the chamber had its minimum number of members; null without a minimum. */
  readonly quorate: boolean | null;
  readonly minBackersForGraduation: number;
  /** The members in turn order. Facts that lines of an earlier release lack are null. */
  readonly members: readonly OutcomeMember[];
  /** The ideas by slot. */
  readonly ideas: readonly OutcomeIdea[];
  /** The bps that the revealed allocations leave unallocated. */
  readonly abstainedBps: number;
  /** The number of members that committed to an allocation, and how many of them revealed it. */
  readonly committed: number;
  readonly revealed: number;
  readonly merkleRoot: Hex;
  readonly committedTxHash: Hex;
  /** The time of the block with the root. */
  readonly endedAt: string;
  /** The event that settled the chamber. */
  readonly lastEventId: number;
}

export interface OutcomeMember extends Seat {
  readonly did: string;
}

export interface OutcomeIdea {
  readonly ideaId: string;
  readonly ticker: string;
  readonly name: string;
  readonly proposer: string;
  readonly backers: number;
  readonly totalBps: number;
  /** The idea's share of all allocated bps, rounded down; 0 if nothing was allocated. */
  readonly shareBps: number;
  /** The number of further backers that the idea would have needed to graduate. */
  readonly backersMissing: number;
  readonly graduated: boolean;
  readonly withdrawn: boolean;
  readonly version: number;
  readonly tokenAddress: string | null;
  /** Why a graduated idea has no token. */
  readonly failure: string | null;
}

/** The outcome, or what it waits for: a noun phrase and its latest time. The time is null if it depends on the chain. */
export type Outcome = { readonly view: OutcomeView } | { readonly waitsFor: string; readonly until: Millis | null };

/** Once there is a view, it never changes. `now` affects only `waitsFor`. */
export function outcomeOf(state: ChamberState, now: Millis): Outcome {
  const { committed } = state.settlement;
  if (committed === null) return untilCommitted(state, now);
  const pending = undecidedGraduates(state);
  if (pending.length > 0) return { waitsFor: `the deployment of ${namesOf(pending)}`, until: null };
  return { view: viewOf(state, committed) };
}

/** Returns canonical JSON (RFC 8785), so that service, client and auditor produce the same bytes. */
export function outcomeText(view: OutcomeView): string {
  return canonicalJson(view);
}

function untilCommitted(state: ChamberState, now: Millis): Outcome {
  if (isClosed(state, now)) return { waitsFor: 'its root on the chain', until: null };
  const until = knownEnds(state, now).allocateRevealDeadline;
  const phase = phaseAt(state, now);
  return { waitsFor: `the end of the reveals, at ${toTimestamp(until)} at the latest (it is in ${phase})`, until };
}

const NAMED_MAX = 5;

function namesOf(ideas: readonly { readonly ticker: string }[]): string {
  const names = ideas.slice(0, NAMED_MAX).map(({ ticker }) => ticker);
  const more = ideas.length - names.length;
  return more === 0 ? names.join(', ') : `${names.join(', ')} and ${more} more`;
}

function viewOf(state: ChamberState, committed: Committed): OutcomeView {
  const byIdea = tallies(state);
  const allocatedBps = [...byIdea.values()].reduce((sum, { totalBps }) => sum + totalBps, 0);
  const { minBackersForGraduation, minMembers } = state;
  const graduated = new Set(graduates(state));
  const ideas = state.ideas.map((idea): OutcomeIdea => {
    const { ideaId, ticker, name, creatorDid } = idea;
    const { backers = 0, totalBps = 0 } = byIdea.get(ideaId) ?? {};
    const { outcome } = deploymentOf(state.settlement, ideaId);
    return {
      ideaId,
      ticker,
      name,
      proposer: creatorDid,
      backers,
      totalBps,
      shareBps: allocatedBps === 0 ? 0 : Math.floor((totalBps * BPS_TOTAL) / allocatedBps),
      backersMissing: Math.max(0, minBackersForGraduation - backers),
      graduated: graduated.has(idea),
      withdrawn: idea.isWithdrawn,
      version: latestVersion(idea),
      tokenAddress: isDeployed(outcome) ? outcome.tokenAddress : null,
      failure: outcome === null || isDeployed(outcome) ? null : outcome.reason,
    };
  });
  return {
    chamberId: state.chamberId,
    name: state.name,
    topic: state.topic,
    createdBy: state.creatorDid,
    quorate: minMembers === null ? null : !lacksMembers(state),
    minBackersForGraduation,
    members: state.members.map((did, turnOrder) => ({ did, ...(state.seats[turnOrder] as Seat) })),
    ideas,
    abstainedBps: BPS_TOTAL * state.reveals.size - allocatedBps,
    committed: state.commitments.size,
    revealed: state.reveals.size,
    merkleRoot: committed.merkleRoot,
    committedTxHash: committed.txHash,
    endedAt: committed.committedAt,
    lastEventId: state.settlement.lastResultEventId ?? state.lastEventId,
  };
}

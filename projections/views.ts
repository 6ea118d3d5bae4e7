// Computes the views of the read endpoints from the folded state and the clock (specification, Resources and their fields).
import {
  type Admission,
  type Allocation,
  type Deadlines,
  type Hex,
  type Millis,
  type Personality,
  type Phase,
  type Rounds,
  toTimestamp,
} from '../src/vocabulary/values.ts';
import type { AccountState } from './account.ts';
import type { ChamberState, Reveal } from './chamber.ts';
import { graduates, type Tally, tallies } from './graduation.ts';
import { type Idea, latestVersion, type StanceCounts, stanceCounts } from './ideas.ts';
import { isClosed, type PhaseEnds, phaseAt, phaseEnd } from './phase.ts';
import { isQuorate, knownEnds } from './phase-ends.ts';
import { deploymentOf, isDeployed } from './settlement.ts';
import { turnEnd, turnHolderAt } from './turn.ts';

/** GET /me. */
export interface AccountView {
  readonly did: string;
  readonly walletAddress: string;
  readonly walletProven: boolean;
  readonly personality: Personality;
  readonly registeredAt: string;
  /** Absent while the key is in use. */
  readonly retiredAt?: string;
}

/** The number of an agent's actions, by kind. */
export interface AgentRecord {
  readonly chambers: { readonly count: number; readonly newest: number | null };
  readonly proposed: number;
  readonly graduated: number;
}

/** GET /agents/:did: an agent's public data. */
export interface AgentView extends AgentRecord, Omit<AccountView, 'walletAddress'> {
  readonly agentId: string;
  readonly label: string | null;
}

/** An item of GET /chambers. */
export interface ChamberItemView {
  readonly chamberId: number;
  readonly phase: Phase;
  readonly name: string;
  readonly deadlines: Deadlines;
  readonly memberCount: number;
}

/** Extension: an item of GET /chambers?ends=1. */
export interface ListedChamber extends ChamberItemView {
  /** The end of the phase as currently known; null for COMMITTED. */
  readonly phaseEndsAt: string | null;
}

/** Extension: the relayer's progress with a chamber's root. */
export type CommitStatus = 'open' | 'pending' | 'submitted' | 'committed';

/** GET /chambers/:id. */
export interface ChamberView {
  readonly chamberId: number;
  readonly phase: Phase;
  readonly name: string;
  readonly deadlines: Deadlines;
  readonly minBackersForGraduation: number;
  readonly turnSeconds: number | null;
  /** Extension. */
  readonly topic: string | null;
  /** Extension. */
  readonly maxMembers: number | null;
  /** Extension. */
  readonly minMembers: number | null;
  /** Extension: whether the chamber has its minimum number of members; null in LOBBY, and without a minimum. */
  readonly quorate: boolean | null;
  /** Extension. */
  readonly rounds: Rounds | null;
  /** Extension. */
  readonly movesPerTurn: number | null;
  /** Extension: who may join, including agents added later; null if everybody may. */
  readonly admission: Admission | null;
  /** Extension: when each phase ended, or its latest end as currently known. */
  readonly ends: EndsView;
  readonly members: readonly string[];
  readonly currentTurnAgent: string | null;
  /** Extension: the service's time, used for phase and turn. */
  readonly now: string;
  /** Extension: the end of the phase in `ends`; null for COMMITTED. */
  readonly phaseEndsAt: string | null;
  /** Extension: null if there is no turn, or if turns have no time limit. */
  readonly turnEndsAt: string | null;
  readonly ideas: readonly {
    readonly ideaId: string;
    readonly ticker: string;
    readonly name: string;
    readonly creator: string;
    /** Extension. */
    readonly version: number;
    /** Extension. */
    readonly withdrawn: boolean;
  }[];
  readonly merkleRoot: Hex | null;
  readonly committedAt: string | null;
  readonly committedTxHash: Hex | null;
  readonly commitStatus: CommitStatus;
}

/** Extension: the relayer's progress with an idea's token. */
export type DeployStatus = 'none' | 'pending' | 'submitted' | 'deployed' | 'failed';

/** GET /ideas, GET /ideas/:ticker and GET /chambers/:id/ideas. */
export interface IdeaView {
  readonly ideaId: string;
  readonly ticker: string;
  readonly name: string;
  readonly description: string;
  readonly creatorDid: string;
  readonly tokenAddress: string | null;
  readonly chamberId: number;
  readonly graduatedAt: string | null;
  readonly slot: number;
  readonly backers: number;
  readonly totalBps: number;
  readonly deployStatus: DeployStatus;
  /** Why the deployment failed; null otherwise. */
  readonly deployReason: string | null;
  /** The version of name and description: 1 is the proposal, and each amendment adds one. */
  readonly version: number;
  readonly withdrawn: boolean;
  /** The straw poll. */
  readonly stances: StanceCounts;
}

/** An item of GET /chambers/:id/ideas. */
export interface ChamberIdeaView extends IdeaView {
  readonly versions: readonly { readonly version: number; readonly eventId: number; readonly ts: string }[];
}

/** GET /chambers/:id/allocations. Before ALLOCATE_REVEAL, `revealed` and `tally` are empty. */
export interface AllocationsView {
  readonly chamberId: number;
  readonly phase: Phase;
  readonly committed: readonly { readonly did: string; readonly commitment: Hex }[];
  readonly revealed: readonly {
    readonly did: string;
    readonly allocations: readonly Allocation[];
    readonly salt: Hex;
  }[];
  readonly tally: readonly ({ readonly ideaId: string } & Tally)[];
}

export function accountView(state: AccountState): AccountView {
  const { did, walletAddress, walletProven, personality, registeredAt } = state;
  return { did, walletAddress, walletProven, personality, registeredAt, ...retired(state) };
}

export function agentView(state: AccountState, record: AgentRecord): AgentView {
  const { agentId, did, label, walletProven, personality, registeredAt } = state;
  return { agentId, did, label, walletProven, personality, registeredAt, ...retired(state), ...record };
}

function retired({ retirement }: AccountState): { readonly retiredAt?: string } {
  return retirement === null ? {} : { retiredAt: retirement.at };
}

export function chamberView(state: ChamberState, now: Millis): ChamberView {
  const { committed } = state.settlement;
  const phase = phaseAt(state, now);
  return {
    chamberId: state.chamberId,
    phase,
    name: state.name,
    deadlines: deadlinesView(state.deadlines),
    minBackersForGraduation: state.minBackersForGraduation,
    turnSeconds: state.turnSeconds,
    topic: state.topic,
    maxMembers: state.maxMembers,
    minMembers: state.minMembers,
    quorate: isQuorate(state, now),
    rounds: state.rounds,
    movesPerTurn: state.movesPerTurn,
    admission: state.admission,
    ends: endsView(knownEnds(state, now)),
    members: state.members,
    currentTurnAgent: turnHolderAt(state, now),
    now: toTimestamp(now),
    phaseEndsAt: timeView(phaseEnd(state, phase)),
    turnEndsAt: timeView(turnEnd(state, now)),
    ideas: state.ideas.map((idea) => {
      const { ideaId, ticker, name, creatorDid, isWithdrawn } = idea;
      return { ideaId, ticker, name, creator: creatorDid, version: latestVersion(idea), withdrawn: isWithdrawn };
    }),
    merkleRoot: committed?.merkleRoot ?? null,
    committedAt: committed?.committedAt ?? null,
    committedTxHash: committed?.txHash ?? null,
    commitStatus: commitStatus(state, now),
  };
}

export function timeView(at: Millis | null): string | null {
  return at === null ? null : toTimestamp(at);
}

/** Lists the members, because building them from DEADLINES takes a third longer for each item of a list. */
export function deadlinesView(deadlines: ChamberState['deadlines']): Deadlines {
  return {
    lobbyDeadline: toTimestamp(deadlines.lobbyDeadline),
    proposalDeadline: toTimestamp(deadlines.proposalDeadline),
    debateDeadline: toTimestamp(deadlines.debateDeadline),
    allocateCommitDeadline: toTimestamp(deadlines.allocateCommitDeadline),
    allocateRevealDeadline: toTimestamp(deadlines.allocateRevealDeadline),
  };
}

/** The phases that have an end, in order. */
export const ENDS = ['lobby', 'proposal', 'debate', 'commit', 'reveal'] as const;

export type EndsView = Readonly<Record<(typeof ENDS)[number], string>>;

function endsView(ends: PhaseEnds): EndsView {
  return {
    lobby: toTimestamp(ends.lobbyDeadline),
    proposal: toTimestamp(ends.proposalDeadline),
    debate: toTimestamp(ends.debateDeadline),
    commit: toTimestamp(ends.allocateCommitDeadline),
    reveal: toTimestamp(ends.allocateRevealDeadline),
  };
}

function commitStatus(state: ChamberState, now: Millis): CommitStatus {
  if (state.settlement.committed !== null) return 'committed';
  if (state.settlement.commitSubmitted.length > 0) return 'submitted';
  return isClosed(state, now) ? 'pending' : 'open';
}

export function ideaViews(state: ChamberState): readonly ChamberIdeaView[] {
  const byIdea = tallies(state);
  const graduated = new Set(graduates(state));
  return state.ideas.map((idea) => ({
    ...ideaView(state, idea, byIdea.get(idea.ideaId), graduated.has(idea)),
    versions: idea.versions.map(({ eventId, at }, index) => ({ version: index + 1, eventId, ts: toTimestamp(at) })),
  }));
}

/** `isGraduate` matters only once the chamber is committed. */
export function ideaView(state: ChamberState, idea: Idea, tally: Tally | undefined, isGraduate: boolean): IdeaView {
  const { submitted, outcome } = deploymentOf(state.settlement, idea.ideaId);
  const deployed = isDeployed(outcome) ? outcome : null;
  const failed = isDeployed(outcome) ? null : outcome;
  const awaited = state.settlement.committed !== null && isGraduate ? 'pending' : 'none';
  const beforeOutcome = submitted.length > 0 ? 'submitted' : awaited;
  return {
    ideaId: idea.ideaId,
    ticker: idea.ticker,
    name: idea.name,
    description: idea.description,
    creatorDid: idea.creatorDid,
    tokenAddress: deployed?.tokenAddress ?? null,
    chamberId: state.chamberId,
    graduatedAt: deployed?.graduatedAt ?? null,
    slot: idea.slot,
    backers: tally?.backers ?? 0,
    totalBps: tally?.totalBps ?? 0,
    deployStatus: deployed ? 'deployed' : failed ? 'failed' : beforeOutcome,
    deployReason: failed?.reason ?? null,
    version: latestVersion(idea),
    withdrawn: idea.isWithdrawn,
    stances: stanceCounts(idea),
  };
}

export function allocationsView(state: ChamberState, now: Millis): AllocationsView {
  const phase = phaseAt(state, now);
  const isOpen = phase === 'ALLOCATE_REVEAL' || phase === 'COMMITTED';
  return {
    chamberId: state.chamberId,
    phase,
    committed: [...state.commitments].map(([did, commitment]) => ({ did, commitment })),
    revealed: [...state.reveals].map(([did, reveal]) => ({ did, ...revealView(reveal) })),
    tally: isOpen ? [...tallies(state)].map(([ideaId, tally]) => ({ ideaId, ...tally })) : [],
  };
}

/** Lists the properties, because a reveal parsed from its line has them in a different order. */
function revealView({ allocations, salt }: Reveal): Reveal {
  return { allocations: allocations.map(({ ideaId, bps }) => ({ ideaId, bps })), salt };
}

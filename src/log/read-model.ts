// The read model: lists and look-ups on the derived tables, which appends write and a rebuild recreates from the lines.
import type { ChamberListing } from '../../projections/listings.ts';
import type { Membership } from '../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../projections/views.ts';
import type { Millis, Phase } from '../vocabulary/values.ts';

export interface GraduatedQuery {
  readonly limit: number;
  readonly after?: Pick<IdeaView, 'graduatedAt' | 'chamberId' | 'slot'> | undefined;
}

export interface ChamberListQuery {
  readonly phase: Phase | undefined;
  /** Only chambers with a smaller id. */
  readonly before: number | undefined;
  readonly limit: number;
  readonly now: Millis;
}

export type MemberPosition = readonly [chamberId: number, turnOrder: number | null];

export interface ReadModel {
  /** Newest first. */
  listChambers(query: ChamberListQuery): Promise<readonly ChamberListing[]>;
  /** Ideas with a token, newest graduation first, starting after `after`. */
  listGraduatedIdeas(query: GraduatedQuery): Promise<readonly IdeaView[]>;
  /** Finds the idea with the ticker, ignoring case. Prefers graduated ideas, then newer ones. */
  findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined>;
  /** Chambers past their reveal deadline that are not settled, oldest deadline first. */
  listUnsettled(now: Millis, limit: number): Promise<readonly number[]>;
  /** Settled chambers, latest reveal deadline first. */
  listSettled(limit: number): Promise<readonly number[]>;
  /** The agent's chambers that are not committed, newest first. */
  listMemberships(did: string, limit: number): Promise<readonly Membership[]>;
  /** The chambers that the agent joined, newest first. */
  listChambersOf(did: string, query: Pick<ChamberListQuery, 'before' | 'limit'>): Promise<readonly ChamberListing[]>;
  /** Returns those of the chambers in which the agent has an idea that is not withdrawn. */
  listChambersWithIdea(did: string, chamberIds: readonly number[]): Promise<readonly number[]>;
  /** Returns the members' DIDs; null for a position without a member. */
  listMembersAt(positions: readonly MemberPosition[]): Promise<readonly (string | null)[]>;
  agentRecord(did: string): Promise<AgentRecord>;
  /** Counts the creator's chambers that are not committed, up to `max`. */
  countOpenChambers(creatorDid: string, max: number): Promise<number>;
  /** Personal data, kept outside the log. */
  operatorEmail(did: string): Promise<string | undefined>;
}

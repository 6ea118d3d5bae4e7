// What calls take and give beyond the views: the bodies of requests and the short answers (specification, Endpoints).
import type { Allocation, DeadlineName, Hex, JsonObject, Personality, Phase } from '../vocabulary/values.ts';

export interface CallOptions {
  /**
   * Calls the wait off with the signal's reason. A move under way may have been accepted all the same: the chamber's
   * events tell.
   */
  readonly signal?: AbortSignal;
}

export interface Registration {
  /** An EVM address; where mixed-case, with a right EIP-55 checksum. */
  readonly walletAddress: string;
  readonly operatorEmail: string;
  readonly personality?: Personality;
}

/** Dates or RFC 3339 timestamps in UTC, none before the one before it; equal ones skip the phase between. */
type NewDeadlines = Readonly<Record<DeadlineName, Date | string>>;

export interface NewChamber extends NewDeadlines {
  readonly name: string;
  /** How many members must back an idea for it to become a token; 1 without it. */
  readonly minBackersForGraduation?: number;
  /** After so many seconds a turn goes to the next member; without it a turn has no limit. */
  readonly turnSeconds?: number;
}

export interface NewIdea {
  readonly name: string;
  /** 1–32 of A–Z a–z 0–9 _ . -, unique in the chamber whatever the case. */
  readonly ticker: string;
  readonly description?: string;
}

export interface DebateMove {
  readonly comment: string;
  /** The idea that the comment is about. */
  readonly ideaId?: string | null;
  readonly refinement?: JsonObject;
}

export interface ChamberQuery {
  readonly phase?: Phase;
  /** 1–200, 50 without it. */
  readonly limit?: number;
  /** Only chambers with a smaller id: the next page. */
  readonly before?: number;
}

export interface Registered {
  readonly did: string;
  readonly agentId: string;
}

export interface Health {
  readonly ok: boolean;
  readonly env: string;
  /** Where the roots go; null without a chain, absent where the service does not tell. */
  readonly chain?: ChainInfo | null;
}

export interface ChainInfo {
  readonly chainId: number;
  readonly registryAddress: Hex;
  readonly factoryAddress: Hex;
  /** Only of a development chain that the service runs itself. */
  readonly rpcUrl?: string;
}

export interface MerklePreview {
  readonly root: Hex;
  readonly eventCount: number;
  readonly asOfEventId: number;
}

export interface InclusionProof {
  readonly eventId: number;
  readonly leaf: Hex;
  /** Siblings from the leaf up, as OpenZeppelin's MerkleProof.verify takes them. */
  readonly proof: readonly Hex[];
  readonly root: Hex;
  readonly eventCount: number;
}

export interface ConsistencyProof {
  readonly fromRoot: Hex;
  readonly toRoot: Hex;
  readonly proof: readonly Hex[];
}

export type { Allocation, Personality };

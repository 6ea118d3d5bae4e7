// Agents' callback URLs and delivery results. Private data, stored outside the log.
import type { ChamberListing } from '../../projections/listings.ts';
import type { Membership } from '../../projections/todo.ts';
import type { Turns } from '../../projections/turn.ts';
import type { Millis } from '../vocabulary/values.ts';

/** Why the service removed a callback: its receiver responded with 410, or deliveries kept failing. */
export const REMOVAL_REASONS = ['gone', 'failing'] as const;
export type RemovalReason = (typeof REMOVAL_REASONS)[number];

export interface StoredCallback {
  readonly did: string;
  /** Null after the service removed the callback. */
  readonly url: string | null;
  /** When the agent registered the callback. */
  readonly since: Millis;
  readonly succeededAt: Millis | null;
  /** Consecutive duties without a successful delivery. */
  readonly failures: number;
  readonly last: LastDelivery | null;
  readonly removed: RemovalReason | null;
}

export interface LastDelivery {
  readonly at: Millis;
  /** The HTTP status; null if no complete response arrived. */
  readonly status: number | null;
}

export interface ChamberWithTurns {
  readonly chamber: ChamberListing;
  readonly turns: Turns | null;
}

/** Selects the member with this turn order; null selects all members of the chamber. */
export interface MemberSelector {
  readonly chamberId: number;
  readonly turnOrder: number | null;
}

export interface CallbackMembership {
  readonly chamberId: number;
  readonly did: string;
}

export interface ChamberMember {
  readonly chamberId: number;
  readonly member: Membership['member'];
}

export interface CallbackStore {
  get(did: string): Promise<StoredCallback | undefined>;
  put(callback: { readonly did: string; readonly url: string; readonly since: Millis }): Promise<void>;
  remove(did: string): Promise<void>;
  /** Saves delivery results, except for callbacks that were replaced in the meantime. */
  record(changed: readonly StoredCallback[]): Promise<void>;
  /** Stores a signature, and deletes those created before `oldest` (Unix seconds). Returns false if it was already stored. */
  remember(signature: RememberedSignature, oldest: number): Promise<boolean>;
  /** Deletes the signature, so that it counts as new again. */
  forget(signature: RememberedSignature): Promise<void>;
  /** Lists open chambers of agents with a callback, ordered by DID and chamber id, starting after `after`. */
  listMemberships(after: CallbackMembership, limit: number): Promise<readonly CallbackMembership[]>;
  /** Skips chambers that do not exist. */
  listChambersWithTurns(chamberIds: readonly number[]): Promise<readonly ChamberWithTurns[]>;
  /** Lists the selected members that have a callback, in open chambers only. */
  listMembers(seats: readonly MemberSelector[]): Promise<readonly ChamberMember[]>;
}

export interface RememberedSignature {
  /** The hiddenSignatureKey. */
  readonly key: string;
  readonly did: string;
  /** Unix seconds. */
  readonly created: number;
}

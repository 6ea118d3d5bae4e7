// Where agents want to be called: private data that is kept beside the log, in no line.
import type { ChamberListing } from '../../projections/listings.ts';
import type { Membership } from '../../projections/todo.ts';
import type { Turns } from '../../projections/turn.ts';
import type { Millis } from '../vocabulary/values.ts';

/** Why the service removed a callback: its receiver responded with 410, or no delivery succeeded for long. */
export const REMOVALS = ['gone', 'failing'] as const;
export type Removal = (typeof REMOVALS)[number];

export interface StoredCallback {
  readonly did: string;
  /** Null after its removal by the service. */
  readonly url: string | null;
  /** When it was registered. */
  readonly since: Millis;
  readonly succeededAt: Millis | null;
  /** The duties in a row of which no delivery succeeded. */
  readonly failures: number;
  readonly last: LastDelivery | null;
  readonly removed: Removal | null;
}

export interface LastDelivery {
  readonly at: Millis;
  /** The HTTP status; null without a complete response. */
  readonly status: number | null;
}

/** A chamber and its turns, without its members. */
export interface PlayedChamber {
  readonly chamber: ChamberListing;
  readonly turns: Turns | null;
}

/** The members of a chamber: one by its turn order, or all. */
export interface Seats {
  readonly chamberId: number;
  readonly turnOrder: number | null;
}

export interface CallbackMembership {
  readonly chamberId: number;
  readonly did: string;
}

export interface SeatedMember {
  readonly chamberId: number;
  readonly member: Membership['member'];
}

export interface CallbackStore {
  get(did: string): Promise<StoredCallback | undefined>;
  /** Replaces the agent's callback. */
  put(callback: { readonly did: string; readonly url: string; readonly since: Millis }): Promise<void>;
  remove(did: string): Promise<void>;
  /** Writes what deliveries changed, unless the callback was replaced meanwhile. */
  record(changed: readonly StoredCallback[]): Promise<void>;
  /** Keeps a signature, and drops those created before `oldest` (Unix seconds); returns false if it was kept already. */
  remember(signature: RememberedSignature, oldest: number): Promise<boolean>;
  /** The signature counts as new again. */
  forget(signature: RememberedSignature): Promise<void>;
  /** The open chambers of agents with a callback, in order of DID and chamber, after the last one of the previous page. */
  listMemberships(after: CallbackMembership, limit: number): Promise<readonly CallbackMembership[]>;
  /** Those of the chambers that exist. */
  listPlayed(chamberIds: readonly number[]): Promise<readonly PlayedChamber[]>;
  /** The members with a callback in these seats. */
  listSeated(seats: readonly Seats[]): Promise<readonly SeatedMember[]>;
}

export interface RememberedSignature {
  /** The hiddenSignatureKey. */
  readonly key: string;
  readonly did: string;
  /** Unix seconds. */
  readonly created: number;
}

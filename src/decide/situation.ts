// What a decision may look at: the caller, the clock and the limits. Nothing here reads a store or the time itself.
import type { ChamberState } from '../../projections/chamber.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface ChamberLimits {
  readonly membersMax: number;
  readonly ideasMax: number;
  readonly openChambersPerDidMax: number;
}

/** Limits that refuse nothing: for the auditor, who cannot know what was configured. */
export const NO_LIMITS: ChamberLimits = {
  membersMax: Number.POSITIVE_INFINITY,
  ideasMax: Number.POSITIVE_INFINITY,
  openChambersPerDidMax: Number.POSITIVE_INFINITY,
};

/** A move in a chamber that exists. */
export interface Situation {
  readonly state: ChamberState;
  readonly did: string;
  /** The caller's wallet address of this moment. */
  readonly wallet: string;
  readonly now: Millis;
  readonly limits: ChamberLimits;
}

// The caller's decisions. This file holds types alone, so that the package publishes them without other libraries.

export interface AuditPolicy {
  /** The configured limits of the service. */
  readonly maxAgeSeconds?: number | undefined;
  readonly maxSkewSeconds?: number | undefined;
  /** All of the service's own addresses and contracts; empty if unknown. */
  readonly origins?: readonly string[] | undefined;
  readonly registries?: readonly string[] | undefined;
  readonly factories?: readonly string[] | undefined;
  /** Withheld texts leave the chamber undecided. */
  readonly whole?: boolean | undefined;
  readonly allowUnsigned?: boolean | undefined;
  /** Accepts transactions in other blocks than recorded. */
  readonly allowReorganized?: boolean | undefined;
  /** Accepts that the first lines of accounts are missing: releases before schema 4 did not publish them. */
  readonly allowUnpublished?: boolean | undefined;
  /** Accepts missing ids of chambers, as after a restore. */
  readonly allowSkippedIds?: boolean | undefined;
}

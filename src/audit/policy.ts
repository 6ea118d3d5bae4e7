// The caller's policy. This file contains only types, so that the published package needs no other libraries for them.

export interface AuditPolicy {
  /** The configured limits of the service. */
  readonly maxAgeSeconds?: number | undefined;
  readonly maxSkewSeconds?: number | undefined;
  /** All of the service's addresses and contracts; empty if unknown. */
  readonly origins?: readonly string[] | undefined;
  readonly registries?: readonly string[] | undefined;
  readonly factories?: readonly string[] | undefined;
  /** Makes withheld texts count as undecided. */
  readonly whole?: boolean | undefined;
  readonly allowUnsigned?: boolean | undefined;
  /** Accepts transactions in blocks other than those recorded. */
  readonly allowReorganized?: boolean | undefined;
  /** Accepts accounts without their first lines, which releases before schema 4 did not publish. */
  readonly allowUnpublished?: boolean | undefined;
  /** Accepts gaps in chamber ids, for example after a restore. */
  readonly allowSkippedIds?: boolean | undefined;
}

// What only the caller of an audit can decide. Types alone: the package publishes them without the libraries behind the rest.

export interface AuditPolicy {
  /** The limits that the service was configured with. */
  readonly maxAgeSeconds?: number | undefined;
  readonly maxSkewSeconds?: number | undefined;
  /** The service's own addresses and contracts, all of them; empty: unknown. */
  readonly origins?: readonly string[] | undefined;
  readonly registries?: readonly string[] | undefined;
  readonly factories?: readonly string[] | undefined;
  readonly allowUnsigned?: boolean | undefined;
  /** Transactions may be in other blocks than the lines record. */
  readonly allowReorganized?: boolean | undefined;
  /** First lines of accounts may be missing that releases before schema 4 did not publish. */
  readonly allowUnpublished?: boolean | undefined;
  /** A restore may have skipped ids of chambers. */
  readonly allowSkippedIds?: boolean | undefined;
}

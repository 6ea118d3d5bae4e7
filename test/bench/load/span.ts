// Spans of time on a clock that all processes of the machine share.

/** Milliseconds since 1970. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

export function epochNow(): number {
  return performance.timeOrigin + performance.now();
}

/** Returns the requests made within the span. */
export function during<Each extends { readonly at: number }>(
  all: readonly Each[],
  { from, until }: Span,
): readonly Each[] {
  return all.filter(({ at }) => at >= from && at < until);
}

// What the command line may change.

export interface Options {
  /** Rounds of measuring. */
  readonly runs: number;
  /** Only sides of such a name, where a bench has several baselines. */
  readonly only: RegExp;
  /** Share of the full sizes: below 1 a bench is only tried out. */
  readonly scale: number;
  /** Another checkout of the project, built, for `versus`. */
  readonly against: string | undefined;
}

export function scaled(size: number, { scale }: Options): number {
  return Math.max(1, Math.round(size * scale));
}

// The options of the command line.

export interface Options {
  /** The number of rounds. */
  readonly runs: number;
  /** Measures only sides with a matching name, in benches with several baselines. */
  readonly only: RegExp;
  /** The share of the full sizes; below 1, a bench is only tried out. */
  readonly scale: number;
  /** A built checkout of the project to compare with, for `versus`. */
  readonly against: string | undefined;
}

export function scaled(size: number, { scale }: Options): number {
  return Math.max(1, Math.round(size * scale));
}

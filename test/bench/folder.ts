// Where benches leave what outlasts them: figures, profiles and the logs that they read.

export const BENCH_FOLDER = 'data/bench';

/** The time of the run, fit for a file's name. */
export function stamp(): string {
  return new Date().toISOString().replace(/[:.]/g, '-');
}

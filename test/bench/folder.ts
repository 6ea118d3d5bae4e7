// The folder of what outlasts a bench: figures, profiles and the logs that it reads.

export const BENCH_FOLDER = 'data/bench';

/** The time of the run, fit for a file's name. */
export function stamp(): string {
  return new Date().toISOString().replace(/[:.]/g, '-');
}

// The folder for files that outlast a bench: figures, profiles and the logs that it reads.

export const BENCH_FOLDER = 'data/bench';

/** Returns the current time in a form suitable for file names. */
export function stamp(): string {
  return new Date().toISOString().replace(/[:.]/g, '-');
}

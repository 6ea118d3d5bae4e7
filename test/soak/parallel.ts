// Concurrent work.

/** Runs the work for each index below the count, up to this many at a time. */
export async function inParallel(atOnce: number, count: number, run: (index: number) => Promise<void>): Promise<void> {
  const indexes = Array.from({ length: Math.max(0, count) }).keys();
  const work = async () => {
    for (const index of indexes) await run(index);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

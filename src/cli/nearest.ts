// The right name for a wrong one: the candidate that takes the fewest edits.

export function nearest(name: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates.map((candidate) => ({ candidate, edits: editsBetween(name, candidate) }));
  return ranked.sort((a, b) => a.edits - b.edits)[0]?.candidate;
}

/** Levenshtein's distance, a row of its table at a time. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] ?? 0) + (letter === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

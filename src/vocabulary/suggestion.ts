// Suggests the known name nearest to a misspelt one.

/** The maximum number of wrong, missing or extra characters; never more than half of the name's length. */
const EDITS_MAX = 2;

/** Returns `did you mean "…"?` with the nearest name; undefined if no name is near. */
export function suggestion(misspelt: string, names: readonly string[]): string | undefined {
  const nearest = nearestName(misspelt, names);
  return nearest && `did you mean "${nearest}"?`;
}

/** Returns the nearest name; undefined if no name is near. */
export function nearestName<Name extends string>(misspelt: string, names: readonly Name[]): Name | undefined {
  const [nearest] = names
    .map((name) => ({ name, edits: distance(misspelt.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, edits }) => edits <= EDITS_MAX && edits * 2 <= name.length)
    .sort((a, b) => a.edits - b.edits);
  return nearest?.name;
}

/** Returns the Levenshtein distance; infinite if the lengths differ by more than EDITS_MAX. */
function distance(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > EDITS_MAX) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 0; i < from.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) {
      const replaced = (row[j] as number) + (from[i] === to[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}

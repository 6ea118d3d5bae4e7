// The last checkpoint that this browser has seen of a service's log, kept for the next visit. A browser may keep nothing.

const nameOf = (base: string) => `chambers-checkpoint ${base}`;

export function heldCheckpoint(base: string): string | undefined {
  try {
    return localStorage.getItem(nameOf(base)) ?? undefined;
  } catch {
    return undefined;
  }
}

export function holdCheckpoint(base: string, note: string): void {
  try {
    if (localStorage.getItem(nameOf(base)) !== note) localStorage.setItem(nameOf(base), note);
  } catch {
    // The next visit has nothing to compare with.
  }
}

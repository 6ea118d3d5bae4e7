// The last checkpoint of a service's log that this browser has seen, kept for the next visit. Storage can be disabled.

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
    // The next visit can't compare.
  }
}

// Saves the last checkpoint of a service's log that this browser has verified, for the next visit. Storage can be disabled.

const keyOf = (base: string) => `chambers-checkpoint ${base}`;

export function savedCheckpoint(base: string): string | undefined {
  try {
    return localStorage.getItem(keyOf(base)) ?? undefined;
  } catch {
    return undefined;
  }
}

export function saveCheckpoint(base: string, note: string): void {
  try {
    if (localStorage.getItem(keyOf(base)) !== note) localStorage.setItem(keyOf(base), note);
  } catch {
    // Without storage, the next visit has no checkpoint to compare.
  }
}

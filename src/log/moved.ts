// A log that was copied to another store takes no more events: with two writers, one logId would have two histories.

/** Name in `meta` of the store that the log has moved to. */
export const MOVED_TO = 'moved_to';

/** One line. */
export class LogHasMoved extends Error {}

export function requireNotMoved(movedTo: string | undefined): void {
  if (movedTo === undefined) return;
  throw new LogHasMoved(`its log has moved to ${movedTo}; if there is none, repeat chambers copy`);
}

// Whether the database is still the file of its name: SQLite goes on writing to one that was deleted or replaced, and what is
// written there is gone with the process.
import { type Stats, statSync } from 'node:fs';
import { LogCorruption } from './failures.ts';

/** Returns the check, which throws LogCorruption once the path names another file, or none. */
export function sameFileCheck(path: string): () => void {
  const opened = statSync(path);
  return () => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (isSame(found, opened)) return;
    throw new LogCorruption(`${path} was ${found === undefined ? 'deleted' : 'replaced'} while it was open`);
  };
}

function isSame(found: Stats | undefined, opened: Stats): boolean {
  return found !== undefined && found.ino === opened.ino && found.dev === opened.dev;
}

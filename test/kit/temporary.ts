// Temporary folders for tests, and the clean-up at a test's end.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Runs at the end of the test, last registered first. */
export function atEnd(end: () => Promise<void> | void): void {
  onTestFinished(end);
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chambers-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The path of a database that does not exist yet. */
export function temporaryDatabase(): string {
  return join(temporaryFolder(), 'chambers.db');
}

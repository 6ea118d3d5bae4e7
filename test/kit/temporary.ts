// Temporary folders for tests, and clean-up at the end of a test.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { mountSmallDisk, unmount } from './small-file-system.ts';

/** Runs `end` at the end of the test, last registered first. */
export function atEnd(end: () => Promise<void> | void): void {
  onTestFinished(end);
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chambers-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Returns the path of a database that does not exist yet. */
export function temporaryDatabase(): string {
  return join(temporaryFolder(), 'chambers.db');
}

/** Mounts a small file system in memory until the end of the test, and returns its folder; undefined if mounting is not permitted. */
export function smallDisk(size: string): string | undefined {
  const folder = temporaryFolder();
  if (!mountSmallDisk(folder, size)) return undefined;
  atEnd(() => unmount(folder));
  return folder;
}

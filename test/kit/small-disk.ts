// A disk that tests can fill.

import { mountSmallDisk, unmount } from './small-file-system.ts';
import { atEnd, temporaryFolder } from './temporary.ts';

/** A small file system in memory, unmounted at the test's end; undefined where this user may not mount one. */
export function smallDisk(size: string): string | undefined {
  const folder = temporaryFolder();
  if (!mountSmallDisk(folder, size)) return undefined;
  atEnd(() => unmount(folder));
  return folder;
}

// A disk that tests can fill.

import { mountSmallDisk, unmount } from './small-file-system.ts';
import { atEnd, temporaryFolder } from './temporary.ts';

/** Mounts a small file system in memory until the end of the test. Returns undefined if this user may not mount one. */
export function smallDisk(size: string): string | undefined {
  const folder = temporaryFolder();
  if (!mountSmallDisk(folder, size)) return undefined;
  atEnd(() => unmount(folder));
  return folder;
}

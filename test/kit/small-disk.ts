// A disk that tests can fill.
import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { atEnd, temporaryFolder } from './temporary.ts';

/** A small file system in memory, unmounted at the test's end; undefined where this user may not mount one. */
export function smallDisk(size: string): string | undefined {
  const folder = temporaryFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    console.log('skipped: no right to mount a small file system, which only root has');
    return undefined;
  }
  atEnd(() => void execFileSync('umount', [folder]));
  return folder;
}

/** Takes what room there is. */
export function fill(path: string): void {
  try {
    for (;;) appendFileSync(path, Buffer.alloc(4_096));
  } catch {
    // No space left.
  }
}

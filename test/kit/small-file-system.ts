// A file system that can be filled.
import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';

/** Mounts a small file system in memory on the folder. Returns false if this user may not mount one. */
export function mountSmallDisk(folder: string, size: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    console.log('skipped: no right to mount a small file system, which only root has');
    return false;
  }
}

export function unmount(folder: string): void {
  execFileSync('umount', [folder]);
}

/** Fills the file system. */
export function fill(path: string): void {
  try {
    for (;;) appendFileSync(path, Buffer.alloc(4_096));
  } catch {
    // No space left.
  }
}

// Mounts and fills small file systems.
import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';

/** Mounts a small file system in memory on the folder. Returns false if this user may not mount one. */
export function mountSmallDisk(folder: string, size: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    console.log('skipped: only root may mount a small file system');
    return false;
  }
}

export function unmount(folder: string): void {
  execFileSync('umount', [folder]);
}

/** Writes until the file system is full. */
export function fill(path: string): void {
  try {
    for (;;) appendFileSync(path, Buffer.alloc(4_096));
  } catch {
    // The file system is full.
  }
}

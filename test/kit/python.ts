// Python for the tests of its client, which are skipped by name where Python or `cryptography` is missing.
import { execFileSync } from 'node:child_process';
import { it } from 'vitest';

function isInstalled(): boolean {
  try {
    execFileSync('python3', ['-c', 'import cryptography, sys; assert sys.version_info >= (3, 9)'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export const python = isInstalled() ? it : it.skip;
if (python !== it) console.warn('The tests of the Python client are skipped: no python3 with cryptography.');

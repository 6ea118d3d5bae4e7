// Python for tests of its client and of proofs, which are skipped by name where Python or `cryptography` is missing.
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

/** Whether programs in Python can be run. */
export const hasPython = isInstalled();
export const python = hasPython ? it : it.skip;
if (!hasPython) console.warn('What programs in Python test is skipped: no python3 with cryptography.');

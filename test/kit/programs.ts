// Programs that tests start as processes: from the sources or installed on the machine.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MAIN = join(ROOT, 'src/main.ts');
export const CLI = join(ROOT, 'src/cli.ts');

/** Skips the test with a note unless all these programs are installed. */
export function requireInstalled(
  skip: (condition: boolean, note: string) => void,
  ...programs: readonly string[]
): void {
  const missing = programs.filter((program) => !isInstalled(program));
  const note = `not installed: ${missing.join(', ')}`;
  if (missing.length > 0) console.log(`skipped: ${note}`);
  skip(missing.length > 0, note);
}

export function isInstalled(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

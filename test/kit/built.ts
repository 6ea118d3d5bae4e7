// The service as it is shipped: dist, compiled again first where the sources are newer.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const STAMP = join(ROOT, 'dist/src/main.js');
const LOCK = join(ROOT, 'dist/.building');
const LOCK_MS_MAX = 60_000;

/** The path of dist/src/main.js, no older than any source. Test files that need it at once share one build. */
export async function builtMain(): Promise<string> {
  while (newestSource() > modifiedAt(STAMP)) {
    if (lock()) build();
    else await sleep(100);
  }
  return STAMP;
}

function build(): void {
  try {
    // What does not type-check is another test's failure: what counts here is that it was written.
    const { stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.json'], { cwd: ROOT });
    if (newestSource() > modifiedAt(STAMP)) throw new Error(`the service could not be built: ${stdout}`);
  } finally {
    rmSync(LOCK, { recursive: true });
  }
}

function lock(): boolean {
  mkdirSync(dirname(LOCK), { recursive: true });
  try {
    mkdirSync(LOCK);
    return true;
  } catch {
    if (Date.now() - modifiedAt(LOCK) > LOCK_MS_MAX) rmSync(LOCK, { recursive: true, force: true });
    return false;
  }
}

function newestSource(): number {
  const folders = ['src', 'projections'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(ROOT, folder, name)),
  );
  return Math.max(...files.filter((file) => file.endsWith('.ts')).map(modifiedAt));
}

function modifiedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

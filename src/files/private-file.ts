// Whether the file of a secret is its owner's alone.
import { draftOf } from './durable-file.ts';

const OWNER_ONLY = 0o600;
const GROUP_AND_OTHERS = 0o077;

/**
 * Whether other users may use the file. Windows, and file systems such as exFAT, have no modes and report the same one for every file: there it
 * is never said.
 */
export function isOpenToOthers(path: string, platform: string = process.platform): boolean {
  if (platform === 'win32') return false;
  return hasOpenMode(path) && keepsModes(path);
}

function hasOpenMode(path: string): boolean {
  return (fs().statSync(path).mode & GROUP_AND_OTHERS) !== 0;
}

/** Whether a new file next to it has the mode that it was given; also where none can be created. */
function keepsModes(path: string): boolean {
  const probe = draftOf(path);
  try {
    fs().writeFileSync(probe, '', { flag: 'wx', mode: OWNER_ONLY });
    return !hasOpenMode(probe);
  } catch {
    return true;
  } finally {
    fs().rmSync(probe, { force: true });
  }
}

function fs() {
  return process.getBuiltinModule('node:fs');
}

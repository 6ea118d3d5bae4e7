import { draftOf } from './durable-file.ts';

const OWNER_ONLY = 0o600;
const GROUP_AND_OTHERS = 0o077;

/** Returns whether other users can access the file; false on Windows and exFAT, which report the same mode for every file. */
export function isOpenToOthers(path: string, platform: string = process.platform): boolean {
  if (platform === 'win32') return false;
  return hasOpenMode(path) && keepsModes(path);
}

function hasOpenMode(path: string): boolean {
  return (fs().statSync(path).mode & GROUP_AND_OTHERS) !== 0;
}

/** Returns whether a new file in the same folder gets the requested mode; true if no file can be created. */
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

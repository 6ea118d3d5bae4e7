// Which file the path of a database means. SQLite follows symbolic links and keeps its write-ahead log beside the file itself.
import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

const IF_THERE = { throwIfNoEntry: false } as const;

/**
 * The path without links, of a file that need not exist yet. Throws an Error that says in one line why the file cannot be
 * opened safely: by two names it would have two write-ahead logs, and SQLite throws away one that has lost its file.
 */
export function requireOnePlace(path: string): string {
  const found = statSync(path, IF_THERE);
  if (found !== undefined && !found.isFile()) throw new Error('it is no file');
  const { size, nlink } = found ?? { size: 0, nlink: 0 };
  if (nlink > 1) throw new Error(`the file has ${nlink} names (hard links), of which it can be written by one alone`);
  const file = found === undefined ? placeOf(path) : realpathSync(path);
  if (size === 0 && (statSync(`${file}-wal`, IF_THERE)?.size ?? 0) > 0) {
    throw new Error(`it is missing or empty, but ${file}-wal holds a part of it: bring it back, or move that away`);
  }
  return file;
}

/** Where a missing file will be made: at its path, or where a link at its path leads. */
function placeOf(path: string): string {
  const folder = dirname(path);
  if (statSync(folder, IF_THERE) === undefined) throw new Error(`the folder ${folder} does not exist`);
  const place = join(realpathSync(folder), basename(path));
  if (lstatSync(place, IF_THERE) === undefined) return place;
  return placeOf(resolve(dirname(place), readlinkSync(place)));
}

// Writes files completely or not at all, and replaces existing files only with --force.
import { existsSync, rmSync } from 'node:fs';
import { rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { draftOf, ifMissing, moveFile } from '../files/durable-file.ts';
import { CommandError } from './output.ts';

/** 128 plus SIGINT's number, as shells report it. */
const EXIT_INTERRUPTED = 130;

/** Writes a draft next to the target and renames it once its content is durable. */
export async function writeWhole(
  path: string,
  texts: Iterable<string> | AsyncIterable<string>,
  isForced: boolean,
): Promise<void> {
  await requireWritable(path, isForced);
  const draft = draftOf(path);
  const onInterrupt = () => {
    rmSync(draft, { force: true });
    process.exit(EXIT_INTERRUPTED);
  };
  process.once('SIGINT', onInterrupt);
  try {
    await writeFile(draft, texts, { flag: 'wx' });
    await moveFile(draft, path, { isNew: !isForced });
  } finally {
    process.off('SIGINT', onInterrupt);
    await rm(draft, { force: true });
  }
}

export async function requireWritable(path: string, isForced: boolean): Promise<void> {
  if ((await isRegularFile(path)) && !isForced) {
    throw new CommandError('conflict', `${path} already exists: name another file, or replace it with --force`);
  }
  if (path === '' || !existsSync(dirname(path))) {
    throw new CommandError('usage', `cannot write “${path}”: its folder does not exist`);
  }
}

/** Returns false if the file does not exist. Throws for folders, devices and pipes. */
export async function isRegularFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(ifMissing);
  if (found === undefined || found.isFile()) return found !== undefined;
  throw new CommandError('usage', `${path} is not a regular file`);
}

// The only code that replaces files. It replaces them atomically, and a file's content and name are durable when a function returns. Node's
// modules are loaded on use, because the client's bundles also run in browsers.
import type { FileHandle } from 'node:fs/promises';

type Content = string | Uint8Array;

interface FileOptions {
  /** The mode of the new file; the umask applies. */
  readonly mode?: number;
  /** Keep the owner and mode of a replaced file, because root may replace another user's file. */
  readonly keepsOwner?: boolean;
}

interface MoveOptions {
  /** Fail with EEXIST if the file exists. */
  readonly isNew: boolean;
}

/** Replaces or creates the file. After a crash it has either the old or the new content. */
export function replaceFile(path: string, content: Content, options: FileOptions = {}): Promise<void> {
  return writeWhole(path, content, { ...options, isNew: false });
}

/** Rejects with EEXIST if the file exists. */
export function createFile(path: string, content: Content, options: FileOptions = {}): Promise<void> {
  return writeWhole(path, content, { ...options, isNew: true });
}

async function writeWhole(path: string, content: Content, options: FileOptions & MoveOptions): Promise<void> {
  const { chmod, chown, rm, stat, writeFile } = fs().promises;
  const former = options.keepsOwner ? await stat(path).catch(ifMissing) : undefined;
  const draft = draftOf(path);
  try {
    await writeFile(draft, content, { flag: 'wx', mode: options.mode });
    if (former !== undefined) {
      await chown(draft, former.uid, former.gid);
      await chmod(draft, former.mode);
    }
    await moveFile(draft, path, options);
  } finally {
    await rm(draft, { force: true });
  }
}

const DRAFT_NAME_CHARS = 8;

/** Returns a random name in the same folder, because two writers of one file must not share a draft. */
export function draftOf(path: string): string {
  return `${path}.${globalThis.crypto.randomUUID().slice(0, DRAFT_NAME_CHARS)}.partial`;
}

/** Flushes a complete file, such as a draft, and renames it within its folder. */
export async function moveFile(draft: string, path: string, { isNew }: MoveOptions): Promise<void> {
  const { link, rename, unlink } = fs().promises;
  await flush(draft);
  if (isNew) {
    try {
      // A rename would replace a file that another process has just created.
      await link(draft, path);
      await unlink(draft);
    } catch (error) {
      requireRenameAllowed(path, error);
      await rename(draft, path);
    }
  } else {
    await rename(draft, path);
  }
  await flushFolder(folderOf(path));
}

/**
 * Throws the error of link(), unless a rename may be used instead, because exFAT and SMB have no hard links. There, a file created between
 * this check and the rename is lost; these file systems offer no way to prevent that.
 */
function requireRenameAllowed(path: string, error: unknown): void {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST' || code === 'ENOENT') throw error;
  if (fs().existsSync(path)) throw Object.assign(new Error(`EEXIST: ${path} exists`), { code: 'EEXIST' });
}

/** The time that another process gets to finish its line. */
const LINE_MILLIS = 200;

/**
 * Appends a line of JSON to the file, and creates a missing file. If a crash or a full disk left the last line incomplete, this function
 * first adds the missing line break or removes the partial line.
 */
export async function appendLine(path: string, line: string, { mode }: FileOptions = {}): Promise<void> {
  const file = await fs().promises.open(path, 'a+', mode);
  try {
    for (let tail = await tornTail(file); tail.text !== ''; tail = await tornTail(file)) {
      await new Promise((resolve) => setTimeout(resolve, LINE_MILLIS));
      repairTail(file.fd, tail);
    }
    await file.writeFile(`${line}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await flushFolder(folderOf(path));
}

/** Does nothing if the tail has changed. Synchronous, so that no other call can append a line before the truncation. */
function repairTail(fd: number, { text, begin, end }: Tail): void {
  const { fstatSync, ftruncateSync, readSync, writeSync } = fs();
  if (fstatSync(fd).size !== end) return;
  const bytes = Buffer.alloc(end - begin);
  readSync(fd, bytes, 0, bytes.length, begin);
  if (bytes.toString('utf8') !== text) return;
  if (isJson(text)) writeSync(fd, '\n');
  else ftruncateSync(fd, begin);
}

interface Tail {
  readonly text: string;
  readonly begin: number;
  readonly end: number;
}

const TAIL_BYTES = 65_536;
const LINE_BREAK = 0x0a;

/** Returns the text after the last line break. */
async function tornTail(file: FileHandle): Promise<Tail> {
  const { size: end } = await file.stat();
  for (let length = Math.min(TAIL_BYTES, end); ; length = Math.min(2 * length, end)) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, end - length);
    const read = buffer.subarray(0, bytesRead);
    const lineBreak = read.lastIndexOf(LINE_BREAK);
    if (lineBreak < 0 && length < end) continue;
    const text = read.subarray(lineBreak + 1).toString('utf8');
    return { text, begin: end - length + lineBreak + 1, end };
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Creates the folder and its missing parents. */
export async function makeFolder(path: string, { mode }: FileOptions = {}): Promise<void> {
  const { resolve } = process.getBuiltinModule('node:path');
  const first = await fs().promises.mkdir(path, { recursive: true, mode });
  if (first === undefined) return;
  // The name of each new folder is stored in its parent.
  const top = folderOf(resolve(first));
  for (let folder = resolve(path); folder !== top; ) {
    folder = folderOf(folder);
    await flushFolder(folder);
  }
}

/** Makes the names in the folder durable. */
export async function flushFolder(path: string): Promise<void> {
  if (isWindows()) return;
  await flush(path).catch(ifUnsupported);
}

async function flush(path: string): Promise<void> {
  const file = await fs().promises.open(path, flagToFlush());
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Windows flushes only files that are open for writing, and journals file names itself. */
function flagToFlush(): 'r' | 'r+' {
  return isWindows() ? 'r+' : 'r';
}

function isWindows(): boolean {
  return process.platform === 'win32';
}

/** Some network file systems can't flush a folder. */
function ifUnsupported(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EINVAL') throw error;
}

/** Handles the error of reading a file that need not exist. */
export function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
}

function fs() {
  return process.getBuiltinModule('node:fs');
}

function folderOf(path: string): string {
  return process.getBuiltinModule('node:path').dirname(path);
}

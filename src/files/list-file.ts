// Lists that operators edit: files with one entry per line, in which # starts a comment. A running service rereads them when they change.
import { closeSync, openSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { replaceFile } from './durable-file.ts';

const CHECK_INTERVAL_MS = 2_000;
const OWNER_ONLY = 0o600;
const IF_PRESENT = { throwIfNoEntry: false } as const;

interface WatchedFilesOptions {
  /** A path is undefined if the file is not configured. */
  readonly paths: readonly (string | undefined)[];
  /** Reads all the files; throws an Error if one can't be read. */
  readonly read: () => void;
  /** Called when a reload has read the files. */
  readonly onRead: () => void;
  /** Called when a reload has succeeded, even if no file had changed. */
  readonly onChecked: () => void;
  readonly onProblem: (error: Error, reload: { readonly isForced: boolean }) => void;
}

/** Files that are read together: at the start, when one of them changes, and at each forced reload. */
export class WatchedFiles {
  readonly #options: WatchedFilesOptions;
  #timer: NodeJS.Timeout | undefined;
  #version: string | undefined;
  #isRead = true;

  constructor(options: WatchedFilesOptions) {
    this.#options = options;
  }

  /** Reads and watches the files. Throws what `read` throws, unless the files may be read later. */
  start({ mayBeLater }: { readonly mayBeLater: boolean }): void {
    const { paths } = this.#options;
    if (paths.every((path) => path === undefined)) return;
    if (mayBeLater) this.reload({ isForced: false });
    else this.#read();
    this.#timer = setInterval(() => this.reload({ isForced: false }), CHECK_INTERVAL_MS).unref();
  }

  /** Whether the last attempt to read the files succeeded. */
  get isRead(): boolean {
    return this.#isRead;
  }

  reload({ isForced }: { readonly isForced: boolean }): void {
    const { onRead, onChecked, onProblem } = this.#options;
    try {
      const isDue = isForced || !this.#isRead || this.#version !== this.#currentVersion();
      if (isDue) this.#read();
      onChecked();
      if (isDue) onRead();
    } catch (error) {
      this.#isRead = false;
      onProblem(error as Error, { isForced });
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #read(): void {
    const version = this.#currentVersion();
    this.#options.read();
    this.#version = version;
    this.#isRead = true;
  }

  #currentVersion(): string {
    return this.#options.paths
      .map((path) => {
        const { mtimeMs = 0, size = 0, ino = 0 } = (path && statSync(path, IF_PRESENT)) || {};
        return `${mtimeMs} ${size} ${ino}`;
      })
      .join();
  }
}

/**
 * Replaces a list with the text that `edit` returns (undefined: no change), and returns whether the file changed. The replacement is atomic
 * and keeps the file's mode and owner. A missing file is created. Errors have one-line messages.
 */
export async function editListFile(
  path: string,
  edit: (text: string | undefined) => string | undefined,
): Promise<boolean> {
  const found = statSync(path, IF_PRESENT);
  const file = found === undefined ? path : realpathSync(path);
  const lock = `${file}.lock`;
  makeLock(lock);
  try {
    const edited = edit(found === undefined ? undefined : readListFile(path));
    if (edited === undefined) return false;
    await replaceFile(file, edited, { mode: OWNER_ONLY, keepsOwner: true });
    return true;
  } finally {
    rmSync(lock);
  }
}

/** Without a lock, the second of two concurrent edits would undo the first. */
function makeLock(lock: string): void {
  try {
    closeSync(openSync(lock, 'wx', OWNER_ONLY));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new Error(`${lock} exists: another edit is in progress; if not, remove the file`, { cause: error });
  }
}

/** Throws an Error with a one-line message that begins with `cannot read`. */
export function readListFile(path: string, { name = 'list', remedy = '' } = {}): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`cannot read the ${name} ${path}: ${code}${code === 'ENOENT' ? remedy : ''}`, { cause: error });
  }
}

export interface ListLine {
  /** Counted from 1. */
  readonly number: number;
  /** Without its comment. */
  readonly text: string;
}

/** Returns the lines that have an entry. */
export function listLines(text: string): readonly ListLine[] {
  return text
    .split('\n')
    .map((line, index) => ({ number: index + 1, text: entryOf(line) }))
    .filter((line) => line.text !== '');
}

/** Returns a line's entry, without its comment; empty if the line has no entry. */
export function entryOf(line: string): string {
  return line.replace(/#.*/, '').trim();
}

/** Returns the text of a list with a line appended. */
export function withLine(text: string, line: string): string {
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${line}\n`;
}

// Watches a database file while it is open: SQLite keeps writing to files that were deleted or replaced, and those writes are lost when
// the process exits.
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { LogCorruption } from '../damage.ts';

const IF_PRESENT = { throwIfNoEntry: false } as const;

/** See sqlite.org/walformat.html: the frame count in the -shm's header determines the minimum size of the -wal. */
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const FRAMES_OFFSET = 16;

/** The path under which a file was opened, and the same path with links resolved. */
export interface DatabasePath {
  readonly path: string;
  readonly file: string;
}

export class FileWatch {
  readonly #db: Database;
  readonly #main: Watched;
  readonly #wal: Watched;
  readonly #shm: Watched;
  readonly #shmDescriptor: number;
  readonly #frameCount = new Uint32Array(1);
  readonly #frameBytes: number;
  #shmBytes = 0;

  constructor(db: Database, { path, file }: DatabasePath) {
    this.#db = db;
    this.#main = watch(path);
    this.#wal = watch(`${file}-wal`);
    this.#shm = watch(`${file}-shm`);
    this.#frameBytes = FRAME_HEADER_BYTES + (db.pragma('page_size', { simple: true }) as number);
    this.#shmDescriptor = openSync(this.#shm.path, 'r');
  }

  /** Throws LogCorruption if the file, its -wal or its -shm has been deleted, replaced or truncated. */
  requireUnchanged(): void {
    requireSame(this.#main, 1);
    this.#shmBytes = requireSame(this.#shm, this.#shmBytes);
    if (statSync(this.#wal.path, IF_PRESENT) === undefined) throw this.#saveDeletedWal();
    const walBytes = requireSame(this.#wal, 0);
    // The count is read after the size, because another program's checkpoint resets the count before it truncates the file.
    readSync(this.#shmDescriptor, this.#frameCount, 0, 4, FRAMES_OFFSET);
    const frames = this.#frameCount[0] ?? 0;
    if (frames > 0 && walBytes < WAL_HEADER_BYTES + frames * this.#frameBytes) throw changed(this.#wal, 'truncated');
  }

  /**
   * SQLite's descriptor still reads the deleted file, so a checkpoint can write accepted moves into the main file. It can't overwrite the
   * data of another program that has since opened the database: such a program creates a new -wal, and the -wal then counts as replaced.
   */
  #saveDeletedWal(): LogCorruption {
    const outcome = isCheckpointed(this.#db)
      ? 'all acknowledged moves have been saved in the database'
      : 'the latest acknowledged moves may be lost';
    return changed(this.#wal, 'deleted', `: ${outcome}`);
  }

  /** Call this only after this process has closed its connections: closing any descriptor of the -shm releases SQLite's locks on it. */
  close(): void {
    closeSync(this.#shmDescriptor);
  }
}

interface Watched {
  readonly path: string;
  readonly ino: number;
  readonly dev: number;
}

function watch(path: string): Watched {
  const { ino, dev } = statSync(path);
  return { path, ino, dev };
}

/** Returns the file's size. Throws LogCorruption if the file has changed. */
function requireSame(watched: Watched, bytesMin: number): number {
  const found = statSync(watched.path, IF_PRESENT);
  if (found === undefined) throw changed(watched, 'deleted');
  if (found.ino !== watched.ino || found.dev !== watched.dev) throw changed(watched, 'replaced');
  if (found.size < bytesMin) throw changed(watched, 'truncated');
  return found.size;
}

interface CheckpointResult {
  readonly busy: number;
  /** Frames in the write-ahead log. */
  readonly log: number;
  /** Frames that the main file already contains. */
  readonly checkpointed: number;
}

/** Returns whether the main file now contains the whole write-ahead log. An outside reader of old pages prevents that. */
function isCheckpointed(db: Database): boolean {
  try {
    const [result] = db.pragma('wal_checkpoint(FULL)') as CheckpointResult[];
    return result?.busy === 0 && result.checkpointed === result.log;
  } catch {
    // The caller stops the process in any case.
    return false;
  }
}

function changed({ path }: Watched, how: string, outcome = ''): LogCorruption {
  return new LogCorruption(`${path} was ${how} while it was open${outcome}`);
}

// Which agents may register, create chambers and join: all but the banned, or only those on an allow-list. Both lists are files with
// one DID per line (# starts a comment), reloaded when they change and on SIGHUP.
import { closeSync, openSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { parseDid } from '../crypto/did-key.ts';
import { RepeatedLog, type Repeats } from '../diagnostics/repeated-log.ts';
import { replaceFileSync } from '../files/durable-file.ts';

const CHECK_INTERVAL_MS = 2_000;
const UNREADABLE = 'unreadable';
const OWNER_ONLY = 0o600;
const IF_PRESENT = { throwIfNoEntry: false } as const;

export interface AccessListOptions {
  readonly allowFile: string | undefined;
  readonly banFile: string | undefined;
  /** Called at growing intervals while a list can't be read, and at each forced reload; the previous list stays in force. */
  readonly onProblem: (error: Error, repeats: Repeats) => void;
  /** Called with the lengths of the lists after a reload; null for a list that is not configured. */
  readonly onRead?: (counts: { readonly allowed: number | null; readonly banned: number | null }) => void;
}

export class AccessList {
  readonly #options: AccessListOptions;
  readonly #repeats = new RepeatedLog();
  readonly #timer: NodeJS.Timeout | undefined;
  #allowed: ReadonlySet<string> | undefined;
  #banned: ReadonlySet<string> = new Set();
  #version = '';
  #isRead = true;

  /** Throws an Error that names the invalid line and its file. */
  constructor(options: AccessListOptions) {
    this.#options = options;
    this.#read();
    if (options.allowFile === undefined && options.banFile === undefined) return;
    this.#timer = setInterval(() => this.reload({ isForced: false }), CHECK_INTERVAL_MS).unref();
  }

  permits(did: string): boolean {
    return !this.#banned.has(did) && (this.#allowed === undefined || this.#allowed.has(did));
  }

  /** Whether the last attempt to read the files succeeded. */
  get isRead(): boolean {
    return this.#isRead;
  }

  reload({ isForced }: { readonly isForced: boolean }): void {
    const { onProblem, onRead } = this.#options;
    try {
      const isDue = isForced || !this.#isRead || this.#version !== this.#currentVersion();
      if (isDue) this.#read();
      this.#isRead = true;
      this.#repeats.end(UNREADABLE);
      if (isDue) onRead?.(this.#counts());
    } catch (error) {
      this.#isRead = false;
      const { message } = error as Error;
      if (isForced) onProblem(error as Error, {});
      else this.#repeats.report(UNREADABLE, message, (repeats) => onProblem(error as Error, repeats));
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #read(): void {
    const { allowFile, banFile } = this.#options;
    const version = this.#currentVersion();
    const [allowed, banned] = [allowFile, banFile].map((file) => (file === undefined ? undefined : readDids(file)));
    this.#allowed = allowed;
    this.#banned = banned ?? new Set();
    this.#version = version;
  }

  #counts() {
    const { allowFile, banFile } = this.#options;
    return {
      allowed: allowFile === undefined ? null : (this.#allowed?.size ?? 0),
      banned: banFile === undefined ? null : this.#banned.size,
    };
  }

  #currentVersion(): string {
    return [this.#options.allowFile, this.#options.banFile]
      .map((path) => {
        const { mtimeMs = 0, size = 0, ino = 0 } = (path && statSync(path, IF_PRESENT)) || {};
        return `${mtimeMs} ${size} ${ino}`;
      })
      .join();
  }
}

/**
 * Adds a DID to the list in the file or removes it, and returns whether the file changed. The file is replaced atomically and
 * keeps its comments, mode and owner; adding to a missing file creates it. Errors have one-line messages.
 */
export function editAccessList(path: string, did: string, isListed: boolean): boolean {
  const found = statSync(path, IF_PRESENT);
  const file = found === undefined ? path : realpathSync(path);
  const lock = `${file}.lock`;
  makeLock(lock);
  try {
    const text = found === undefined && isListed ? '' : readText(path);
    if (parseDids(path, text).has(did) === isListed) return false;
    const edited = isListed ? withDid(text, did) : withoutDid(text, did);
    replaceFileSync(file, edited, { mode: OWNER_ONLY, keepsOwner: true });
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

function withDid(text: string, did: string): string {
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${did}\n`;
}

function withoutDid(text: string, did: string): string {
  const others = text.split('\n').filter((line) => didOf(line) !== did);
  return others.join('\n');
}

export function readDids(path: string): ReadonlySet<string> {
  return parseDids(path, readText(path));
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const remedy = code === 'ENOENT' ? '; create an empty file, or add to it with chambers admin allow or ban' : '';
    throw new Error(`cannot read the access list ${path}: ${code}${remedy}`, { cause: error });
  }
}

function parseDids(path: string, text: string): ReadonlySet<string> {
  const dids = new Set<string>();
  for (const [index, line] of text.split('\n').entries()) {
    const did = didOf(line);
    if (did === '') continue;
    if (parseDid(did) === undefined) throw new Error(`${path}, line ${index + 1}: not a did:key of an Ed25519 key`);
    dids.add(did);
  }
  return dids;
}

function didOf(line: string): string {
  return line.replace(/#.*/, '').trim();
}

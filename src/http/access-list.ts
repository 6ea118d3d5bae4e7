// Decides which agents may register, create chambers and join: all agents except banned ones, or only those on an allow-list. Each list
// is a file with one DID per line (# starts a comment), and is reloaded when the file changes and on SIGHUP.
import { parseDid } from '../crypto/did-key.ts';
import { RepeatedLog, type Repeats } from '../diagnostics/repeated-log.ts';
import { editListFile, entryOf, listLines, readListFile, WatchedFiles, withLine } from '../files/list-file.ts';

const UNREADABLE = 'unreadable';

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
  readonly #files: WatchedFiles;
  #allowed: ReadonlySet<string> | undefined;
  #banned: ReadonlySet<string> = new Set();

  /** Throws an Error that names the invalid line and its file. */
  constructor(options: AccessListOptions) {
    this.#options = options;
    const { allowFile, banFile, onProblem, onRead } = options;
    this.#files = new WatchedFiles({
      paths: [allowFile, banFile],
      read: () => this.#read(),
      onRead: () => onRead?.(this.#counts()),
      onChecked: () => this.#repeats.end(UNREADABLE),
      onProblem: (error, { isForced }) => {
        if (isForced) onProblem(error, {});
        else this.#repeats.report(UNREADABLE, error.message, (repeats) => onProblem(error, repeats));
      },
    });
    this.#files.start({ mayBeLater: false });
  }

  permits(did: string): boolean {
    return !this.#banned.has(did) && (this.#allowed === undefined || this.#allowed.has(did));
  }

  /** Whether the last attempt to read the files succeeded. */
  get isRead(): boolean {
    return this.#files.isRead;
  }

  reload(reload: { readonly isForced: boolean }): void {
    this.#files.reload(reload);
  }

  close(): void {
    this.#files.close();
  }

  #read(): void {
    const { allowFile, banFile } = this.#options;
    const [allowed, banned] = [allowFile, banFile].map((file) => (file === undefined ? undefined : readDids(file)));
    this.#allowed = allowed;
    this.#banned = banned ?? new Set();
  }

  #counts() {
    const { allowFile, banFile } = this.#options;
    return {
      allowed: allowFile === undefined ? null : (this.#allowed?.size ?? 0),
      banned: banFile === undefined ? null : this.#banned.size,
    };
  }
}

/**
 * Adds a DID to the list file or removes it, and returns whether the file changed. Adding to a missing file creates the file. Errors
 * have one-line messages.
 */
export function editAccessList(path: string, did: string, isListed: boolean): Promise<boolean> {
  return editListFile(path, (current) => {
    const text = current ?? (isListed ? '' : readText(path));
    if (parseDids(path, text).has(did) === isListed) return undefined;
    return isListed ? withLine(text, did) : withoutDid(text, did);
  });
}

function withoutDid(text: string, did: string): string {
  const others = text.split('\n').filter((line) => entryOf(line) !== did);
  return others.join('\n');
}

export function readDids(path: string): ReadonlySet<string> {
  return parseDids(path, readText(path));
}

function readText(path: string): string {
  const remedy = '; create an empty file, or add to it with chambers admin allow or ban';
  return readListFile(path, { name: 'access list', remedy });
}

function parseDids(path: string, text: string): ReadonlySet<string> {
  const dids = new Set<string>();
  for (const { number, text: did } of listLines(text)) {
    if (parseDid(did) === undefined) throw new Error(`${path}, line ${number}: not a did:key of an Ed25519 key`);
    dids.add(did);
  }
  return dids;
}

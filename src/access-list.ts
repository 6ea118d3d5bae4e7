// Which agents may register, create chambers and join: everybody but the banned, or only those on an allow-list. Both are
// files with one DID a line (# starts a comment), read again when they change and on SIGHUP.
import { readFileSync, statSync } from 'node:fs';
import { parseDid } from './crypto/did-key.ts';

const CHECK_INTERVAL_MS = 2_000;

export interface AccessListOptions {
  readonly allowFile: string | undefined;
  readonly banFile: string | undefined;
  /** A file that can't be read while the service runs: the list as it was stays in force. */
  readonly onProblem: (error: Error) => void;
}

export class AccessList {
  readonly #options: AccessListOptions;
  readonly #timer: NodeJS.Timeout;
  #allowed: ReadonlySet<string> | undefined;
  #banned: ReadonlySet<string> = new Set();
  #version = '';

  /** Throws an Error that names the file and line at fault. */
  constructor(options: AccessListOptions) {
    this.#options = options;
    this.#read();
    this.#timer = setInterval(() => this.reload({ isForced: false }), CHECK_INTERVAL_MS).unref();
  }

  permits(did: string): boolean {
    return !this.#banned.has(did) && (this.#allowed === undefined || this.#allowed.has(did));
  }

  reload({ isForced }: { readonly isForced: boolean }): void {
    try {
      if (isForced || this.#version !== this.#currentVersion()) this.#read();
    } catch (error) {
      this.#options.onProblem(error as Error);
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #read(): void {
    const { allowFile, banFile } = this.#options;
    const version = this.#currentVersion();
    const [allowed, banned] = [readDids(allowFile), readDids(banFile)];
    this.#allowed = allowed;
    this.#banned = banned ?? new Set();
    this.#version = version;
  }

  #currentVersion(): string {
    return [this.#options.allowFile, this.#options.banFile]
      .map((path) => {
        const { mtimeMs = 0, size = 0, ino = 0 } = (path && statSync(path, { throwIfNoEntry: false })) || {};
        return `${mtimeMs} ${size} ${ino}`;
      })
      .join();
  }
}

function readLines(path: string): readonly string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch (error) {
    throw new Error(`cannot read the access list ${path}: ${(error as NodeJS.ErrnoException).code}`, { cause: error });
  }
}

function readDids(path: string | undefined): ReadonlySet<string> | undefined {
  if (path === undefined) return undefined;
  const dids = new Set<string>();
  for (const [index, line] of readLines(path).entries()) {
    const did = line.replace(/#.*/, '').trim();
    if (did === '') continue;
    if (parseDid(did) === undefined) throw new Error(`${path}, line ${index + 1}: not a did:key of an Ed25519 key`);
    dids.add(did);
  }
  return dids;
}

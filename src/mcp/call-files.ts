// Stores the acting calls of a key, one file per chamber: each call, its signed requests (before they are sent), and their results. Only
// one server at a time acts with the key, because it holds a lock, which the operating system releases however the process ends.
import { readdir, readFile, stat, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import * as v from 'valibot';
import { ClientError } from '../client/error.ts';
import { ifMissing, makeFolder, moveFile, replaceFile } from '../files/durable-file.ts';
import { pause } from '../reading/waiting.ts';
import { PHASES } from '../vocabulary/values.ts';
import { signedRequest } from './signed-request.ts';

/** The maximum per chamber; the oldest calls are dropped first. */
const CALLS_MAX = 32;
/** The files with the oldest calls are removed first. */
const FILES_MAX = 512;
const LOCK_POLL_MILLIS = 25;
const OWNER_ONLY = { mode: 0o600 } as const;

const result = v.record(v.string(), v.unknown());

const storedCall = v.object({
  id: v.string(),
  /** The hash of the service, the tool and its arguments: equal calls have equal keys. */
  key: v.string(),
  isAgain: v.boolean(),
  /** The time of the call, by this machine's clock. */
  at: v.number(),
  /** The phase of the first attempt; null for a call that creates a chamber. */
  phase: v.nullable(v.picklist(PHASES)),
  turnEndsAt: v.nullable(v.string()),
  /** The call's commands, in order. A command without a result may or may not have been accepted. */
  steps: v.array(v.object({ name: v.string(), request: signedRequest, result: v.optional(result) })),
  /** Absent while the outcome is unknown. */
  result: v.optional(result),
  /** Whether the caller is known to have received the result. */
  isReceived: v.boolean(),
});
const storedCalls = v.strictObject({ calls: v.array(storedCall) });

export type StoredCall = v.InferOutput<typeof storedCall>;

export class CallFiles {
  readonly #folder: string;
  readonly #report: (line: string) => void;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(folder: string, report: (line: string) => void) {
    this.#folder = folder;
    this.#report = report;
  }

  /**
   * Runs the work exclusively: until it finishes, neither other work in this process nor another process uses the key. If the signal aborts
   * during the wait, rejects with the signal's reason.
   */
  locked<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const done = this.#queue.then(async () => {
      await this.#onDisk(() => makeFolder(this.#folder, { mode: 0o700 }));
      const lock = await this.#lock(signal);
      try {
        return await work();
      } finally {
        lock.close();
      }
    });
    this.#queue = done.catch(() => {});
    return done;
  }

  async #lock(signal: AbortSignal): Promise<Database.Database> {
    while (true) {
      signal.throwIfAborted();
      const lock = new Database(resolve(this.#folder, 'lock'), { timeout: 0 });
      try {
        lock.exec('BEGIN EXCLUSIVE');
        return lock;
      } catch (error) {
        lock.close();
        const isHeld = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
        if (!isHeld) throw this.#unusable(error);
      }
      await pause(LOCK_POLL_MILLIS, signal);
    }
  }

  /** Returns the calls in a chamber, oldest first; with null, the calls that create chambers. Renames a damaged file. */
  async load(chamberId: number | null): Promise<StoredCall[]> {
    const path = this.#pathOf(chamberId);
    const text = await this.#onDisk(() => readFile(path, 'utf8').catch(ifMissing));
    if (text === undefined) return [];
    try {
      return v.parse(storedCalls, JSON.parse(text)).calls;
    } catch {
      const aside = `${path}.broken-${Date.now()}`;
      await this.#onDisk(() => moveFile(path, aside, { isNew: false }));
      this.#report(`${path} is damaged and was renamed to ${aside}: earlier calls are no longer recognised`);
      return [];
    }
  }

  /** Resolves when the calls are on disk. */
  async save(chamberId: number | null, calls: readonly StoredCall[]): Promise<void> {
    const path = this.#pathOf(chamberId);
    const text = JSON.stringify({ calls: calls.slice(-CALLS_MAX) });
    await this.#onDisk(async () => {
      const isNew = (await stat(path).catch(ifMissing)) === undefined;
      if (isNew) await this.#forgetOldest();
      await replaceFile(path, text, OWNER_ONLY);
    });
  }

  async #forgetOldest(): Promise<void> {
    const names = (await readdir(this.#folder)).filter((name) => name.endsWith('.json'));
    if (names.length < FILES_MAX) return;
    const files = await Promise.all(
      names.map(async (name) => ({ name, at: (await stat(join(this.#folder, name))).mtimeMs })),
    );
    files.sort((a, b) => a.at - b.at);
    for (const { name } of files.slice(0, files.length - FILES_MAX + 1)) await unlink(join(this.#folder, name));
  }

  #pathOf(chamberId: number | null): string {
    return join(this.#folder, `${chamberId ?? 'new'}.json`);
  }

  async #onDisk<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw this.#unusable(error);
    }
  }

  #unusable(cause: unknown): ClientError {
    const problem = `cannot store this agent's calls in ${this.#folder}: ${(cause as Error).message}`;
    return new ClientError('CLIENT_ERR_KEY', problem, { cause });
  }
}

// `mirror.db`: the mirror's state and the end of each stream. A step counts only after its transaction is committed; anything else in the
// files comes from an unfinished step and is written again. Only one process can open it; the operating system releases a dead process's lock.
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import type { Stream } from '../tlog/leaf-index.ts';

export interface MirrorState {
  readonly url: string;
  readonly logId: string;
  readonly origin: string;
  /** Verifier keys that have signed checkpoints of the log, newest last. */
  readonly keys: readonly string[];
  /** The number of verified leaves. */
  readonly size: number;
  /** The length in bytes of the verified lines in lines.ndjson. */
  readonly bytes: number;
  /** The newest checkpoint, whose tree may have more leaves than were verified. */
  readonly note: string;
  /** Whether a release that publishes every line wrote any of the lines. */
  readonly isLaterRelease: boolean;
  /** The number of stubs processed from the service's list, and the last of them; absent before the first. */
  readonly stubs?: { readonly count: number; readonly last: string };
  /** Set while the draft of lines.ndjson must replace the file. */
  readonly isReplacing?: true;
}

/** The end of a stream within the verified leaves. */
export interface StreamEnd {
  readonly eventId: number;
  /** The leaf of the last line. */
  readonly entry: Uint8Array;
  /** Whether any line of the stream was published; then all later ones must be. */
  readonly isPublished: boolean;
}

export type StreamEnds = ReadonlyMap<Stream, StreamEnd>;

const LOCK_WAIT_MS = 1_000;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 1), json TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS streams (
  stream TEXT PRIMARY KEY, event_id INTEGER NOT NULL, entry BLOB NOT NULL, is_published INTEGER NOT NULL
) STRICT, WITHOUT ROWID;`;

interface StreamRow {
  readonly event_id: number;
  readonly entry: Buffer;
  readonly is_published: number;
}

export class MirrorRecord {
  readonly #db: Database.Database;
  readonly #statements: ReturnType<typeof prepare>;
  #state: MirrorState | undefined;

  private constructor(db: Database.Database) {
    this.#db = db;
    this.#statements = prepare(db);
    const json = this.#statements.state.get();
    // Trusted, because only this class writes the state.
    this.#state = json === undefined ? undefined : (JSON.parse(json) as MirrorState);
  }

  /** Throws a one-line Error if another process has opened the database. */
  static open(path: string): MirrorRecord {
    const db = new Database(resolve(path), { timeout: LOCK_WAIT_MS });
    try {
      db.pragma('locking_mode = EXCLUSIVE');
      db.pragma('synchronous = FULL');
      // In exclusive locking mode, the lock of the first transaction is held until close.
      db.exec('BEGIN EXCLUSIVE');
      db.exec(SCHEMA);
      db.exec('COMMIT');
      return new MirrorRecord(db);
    } catch (error) {
      db.close();
      const isHeld = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
      const reason = isHeld ? 'another mirror uses the folder' : (error as Error).message;
      throw new Error(`cannot open ${path}: ${reason}`, { cause: error });
    }
  }

  /** undefined before the first commit. */
  get state(): MirrorState | undefined {
    return this.#state;
  }

  endOf(stream: Stream): StreamEnd | undefined {
    const row = this.#statements.end.get(`${stream}`);
    return row && { eventId: row.event_id, entry: row.entry, isPublished: row.is_published === 1 };
  }

  /** Returns the first stream whose name is not less than `text`. */
  streamFrom(text: string): Stream | undefined {
    const stream = this.#statements.from.get(text);
    return stream === undefined || stream.startsWith('did:') ? stream : Number(stream);
  }

  /** Returns chambers whose id is at least `least`, in any order. */
  chambersFrom(least: number, countMax: number): readonly number[] {
    return this.#statements.chambers.all(least, countMax);
  }

  /** Commits atomically and durably. */
  commit(state: MirrorState, ends: StreamEnds): void {
    const { writeState, writeEnd } = this.#statements;
    this.#db
      .transaction(() => {
        for (const [stream, { eventId, entry, isPublished }] of ends) {
          writeEnd.run(`${stream}`, eventId, Buffer.from(entry), Number(isPublished));
        }
        writeState.run(JSON.stringify(state));
      })
      .immediate();
    this.#state = state;
  }

  /** Forgets all leaves, but keeps the log's identity and checkpoint, so that only the same log can be fetched again. */
  restart(): void {
    const { state } = this;
    if (state === undefined) return;
    const none: MirrorState = { ...state, size: 0, bytes: 0, isLaterRelease: false };
    this.#db
      .transaction(() => {
        this.#db.exec('DELETE FROM streams');
        this.#statements.writeState.run(JSON.stringify(none));
      })
      .immediate();
    this.#state = none;
  }

  close(): void {
    this.#db.close();
  }
}

function prepare(db: Database.Database) {
  return {
    state: db.prepare<[], string>('SELECT json FROM state').pluck(),
    writeState: db.prepare('INSERT OR REPLACE INTO state VALUES (1, ?)'),
    end: db.prepare<[string], StreamRow>('SELECT event_id, entry, is_published FROM streams WHERE stream = ?'),
    from: db.prepare<[string], string>('SELECT stream FROM streams WHERE stream >= ? ORDER BY stream LIMIT 1').pluck(),
    chambers: db
      .prepare<[number, number], number>(
        "SELECT CAST(stream AS INTEGER) AS id FROM streams WHERE stream < ':' AND id >= ? LIMIT ?",
      )
      .pluck(),
    writeEnd: db.prepare('INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?)'),
  };
}

// The events as a database file holds them, read by programs other than the service: nothing is written, nothing is trusted.
import Database from 'better-sqlite3';
import { requireOnePlace } from './database-path.ts';
import { SCHEMA_VERSION } from './schema.ts';

export interface StoredEvent {
  readonly position: number;
  readonly chamber_id: number | null;
  readonly account: string | null;
  readonly event_id: number;
  /** The bytes of the line, whatever they are. */
  readonly line: Buffer;
  readonly signature: Buffer | null;
  readonly nodes: Buffer | null;
}

/** Opens the file read-only, beside a running service if need be; throws an Error of one line. */
export function openReader(path: string): Database.Database {
  let db: Database.Database | undefined;
  try {
    // Even a reader throws away a write-ahead log that has lost its file.
    requireOnePlace(path);
    db = new Database(path, { readonly: true, fileMustExist: true });
    requireSchema(db);
    return db;
  } catch (error) {
    db?.close();
    throw new Error(`cannot read the database ${path}: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}

function requireSchema(db: Database.Database): void {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version >= 1 && version <= SCHEMA_VERSION) return;
  throw new Error(`it has schema ${version}, and this version reads 1 to ${SCHEMA_VERSION}`);
}

/** The events of all chambers, chamber by chamber in the order of their ids. */
export function chamberEvents(db: Database.Database): Generator<StoredEvent> {
  return inOrder(db, 'chamber_id');
}

/** The events of all accounts, account by account. */
export function accountEvents(db: Database.Database): Generator<StoredEvent> {
  return inOrder(db, 'account');
}

/** Without the index, which is not trusted: what is sorted is the numbers only, not the lines. */
function* inOrder(db: Database.Database, stream: 'chamber_id' | 'account'): Generator<StoredEvent> {
  const positions = db.prepare<[], number>(
    `SELECT position FROM events WHERE ${stream} IS NOT NULL ORDER BY ${stream}, event_id, position`,
  );
  const event = db.prepare<[number], StoredEvent>(
    `SELECT position, chamber_id, account, event_id, CAST(line AS BLOB) AS line, signature, nodes
     FROM events WHERE position = ?`,
  );
  for (const position of positions.pluck().iterate()) yield event.get(position) as StoredEvent;
}

export function readMeta(db: Database.Database, name: string): string | undefined {
  return db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(name);
}

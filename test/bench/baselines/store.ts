// How the baselines store a move: one row in SQLite (WAL, synchronous=FULL), in a transaction per move or per batch.
import Database from 'better-sqlite3';
import type { BaselineRequest } from './evidence.ts';

export type CommitMode = 'group' | 'single' | 'postgres';
/** Resolves to the move's event id once it is on disk. */
export type Store = (chamberId: number, request: BaselineRequest) => Promise<number>;

interface Row {
  readonly chamberId: number;
  readonly eventId: number;
  readonly request: BaselineRequest;
}

export function openStore(path: string, mode: 'group' | 'single'): Store {
  const db = new Database(path);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(
    'CREATE TABLE moves (id INTEGER PRIMARY KEY, chamber_id INTEGER, event_id INTEGER, body BLOB, input TEXT, signature TEXT)',
  );
  const insert = db.prepare('INSERT INTO moves (chamber_id, event_id, body, input, signature) VALUES (?, ?, ?, ?, ?)');
  const write = db.transaction((rows: readonly Row[]) => {
    for (const { chamberId, eventId, request } of rows) {
      insert.run(chamberId, eventId, request.body, request.signatureInput, request.signature);
    }
  });
  const commit = mode === 'group' ? grouped(write) : async (row: Row) => write([row]);
  const heads = new Map<number, number>();

  return async (chamberId, request) => {
    const eventId = (heads.get(chamberId) ?? 0) + 1;
    heads.set(chamberId, eventId);
    await commit({ chamberId, eventId, request });
    return eventId;
  };
}

function grouped(write: (rows: readonly Row[]) => void): (row: Row) => Promise<void> {
  let due: { readonly row: Row; readonly resolve: () => void }[] = [];

  function flush(): void {
    const batch = due;
    due = [];
    write(batch.map(({ row }) => row));
    for (const { resolve } of batch) resolve();
  }

  return (row) =>
    new Promise((resolve) => {
      if (due.length === 0) setImmediate(flush);
      due.push({ row, resolve });
    });
}

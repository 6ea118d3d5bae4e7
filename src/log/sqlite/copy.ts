// An SQLite file as the source or the target of a copy.
import { existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { draftOf, moveFile } from '../../files/durable-file.ts';
import type { CopySource, CopyTarget, EventRow, KeptRow, KeptTable } from '../copy-port.ts';
import { MOVED_TO } from '../moved.ts';
import { CLOCK_HIGH_WATER_MARK, readClock } from './clock.ts';
import { createPrivate, DATABASE_PAGE_BYTES, openDatabaseFile, requireOneName } from './database-file.ts';
import { deriveTables } from './derived-tables.ts';
import { indexEverything } from './event-index.ts';
import { fsckDatabase } from './fsck.ts';
import { migrate } from './migration.ts';
import { openReader, readMeta } from './reader.ts';
import { COPIED_THROUGH } from './stored-events.ts';

const ROWS_PER_PAGE = 500;

/** Holds the file's lock, as a service would, and SQLite's own. The mark is committed with it, or nothing is. */
export function openSqliteSource(path: string): CopySource {
  // The reader makes no file that is missing.
  openReader(path).close();
  const file = openDatabaseFile(path);
  const { db } = file;
  db.exec('BEGIN IMMEDIATE');
  return {
    ...rowsOf(db),
    movedTo: async () => readMeta(db, MOVED_TO),
    markMoved: async (to) => {
      db.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)').run(MOVED_TO, to);
      db.exec('COMMIT');
    },
    close: async () => file.close(),
  };
}

/** Opens a file next to the target until the copy is complete. */
export function openSqliteTarget(path: string): CopyTarget {
  if (existsSync(path)) throw new Error(`${path} exists already: name a new file`);
  requireOneName(path);
  const partial = draftOf(resolve(path));
  const remove = () => {
    for (const file of [partial, `${partial}-journal`]) rmSync(file, { force: true });
  };
  createPrivate(partial);
  const db = new Database(partial);
  db.pragma(`page_size = ${DATABASE_PAGE_BYTES}`);
  // It is flushed when it is complete, and removed if it never is.
  db.pragma('synchronous = OFF');
  migrate(db);
  db.exec('BEGIN');
  const insert = db.prepare(
    `INSERT INTO events VALUES (@position, @chamber_id, @account, @event_id, CAST(@line AS TEXT), @signature, @nodes, @line_crc, @nodes_crc)`,
  );
  let position = 0;
  return {
    ...rowsOf(db),
    writeEvents: async (rows) => {
      for (const { stream, line, nodes, ...rest } of rows) {
        const chamber_id = typeof stream === 'number' ? stream : null;
        const account = typeof stream === 'string' ? stream : null;
        const checksums = { line_crc: crc32(line), nodes_crc: nodes && crc32(nodes) };
        insert.run({ ...rest, position: ++position, chamber_id, account, line, nodes, ...checksums });
      }
    },
    writeKept: async (table, rows) => {
      const write = db.prepare(WRITE_KEPT[table]);
      for (const row of rows) write.run(row);
    },
    derive: async () => {
      db.prepare('INSERT INTO meta VALUES (?, ?)').run(COPIED_THROUGH, String(position));
      indexEverything(db);
      deriveTables(db, (_, error) => {
        throw error;
      });
      db.exec('COMMIT');
      fsckDatabase(partial, ({ stream, eventId, problem }) => {
        throw new Error(`the log is damaged, ${stream ?? 'database'}, event ${eventId}: ${problem}`);
      });
    },
    publish: async () => {
      db.close();
      await moveFile(partial, path, { isNew: true });
    },
    close: async () => {
      db.close();
      remove();
    },
  };
}

const WRITE_KEPT: Readonly<Record<KeptTable, string>> = {
  meta: 'INSERT OR REPLACE INTO meta (name, value) VALUES (@name, @value)',
  registrations: 'INSERT INTO registrations VALUES (@signature_hash, @did, @event_id, @covers_email)',
  contacts: 'INSERT INTO contacts VALUES (@did, CAST(@operator_email AS TEXT))',
  tiles: 'INSERT INTO tiles VALUES (@level, @tile, @hashes)',
  checkpoints: 'INSERT INTO checkpoints VALUES (@log_id, @size, @note)',
};

interface SealedRow extends EventRow {
  readonly position: number;
  readonly line_crc: number | null;
  readonly nodes_crc: number | null;
}

function rowsOf(db: Database.Database): Pick<CopySource, 'events' | 'kept'> {
  return { events: () => readEvents(db), kept: (table) => readKept(db, table) };
}

function* readEvents(db: Database.Database): Generator<readonly EventRow[]> {
  const page = db.prepare<[number], SealedRow>(
    `SELECT position, coalesce(chamber_id, account) AS stream, event_id, CAST(line AS BLOB) AS line, signature, nodes, line_crc, nodes_crc
     FROM events WHERE position > ? ORDER BY position LIMIT ${ROWS_PER_PAGE}`,
  );
  for (let after = 0; ; ) {
    const rows = page.all(after);
    const last = rows.at(-1);
    if (last === undefined) return;
    for (const row of rows) requireIntact(row);
    yield rows;
    after = last.position;
  }
}

function requireIntact({ stream, event_id, line, nodes, line_crc, nodes_crc }: SealedRow): void {
  if (line_crc === crc32(line) && nodes_crc === (nodes && crc32(nodes))) return;
  throw new Error(`event ${event_id} of ${stream} is not as it was written: chambers fsck reports the damage`);
}

/** The key, and the columns. */
const READ_KEPT = {
  registrations: ['signature_hash', 'signature_hash, did, event_id, covers_email'],
  contacts: ['did', 'did, CAST(operator_email AS BLOB) AS operator_email'],
  checkpoints: ['log_id', 'log_id, size, note'],
} as const;

/** What another store has of its own, or is written again. */
const OWN_META = "'indexed_through', 'moved_to', 'copied_through', 'clock_high_water_mark'";

function* readKept(db: Database.Database, table: KeptTable): Generator<readonly KeptRow[]> {
  if (table === 'meta') {
    yield db.prepare<[], KeptRow>(`SELECT name, value FROM meta WHERE name NOT IN (${OWN_META})`).all();
    yield [{ name: CLOCK_HIGH_WATER_MARK, value: String(readClock(db)) }];
    return;
  }
  if (table === 'tiles') {
    const tiles = db.prepare<[], KeptRow>('SELECT level, tile, hashes FROM tiles ORDER BY level, tile');
    // Their key is not a single column, and nothing is written to the source meanwhile.
    for (const row of tiles.iterate()) yield [row];
    return;
  }
  const [key, columns] = READ_KEPT[table];
  const page = db.prepare<[KeptRow[string]], KeptRow>(
    `SELECT ${columns} FROM ${table} WHERE ${key} > ? ORDER BY ${key} LIMIT ${ROWS_PER_PAGE}`,
  );
  // SQLite takes every blob as greater than any text.
  for (let after: KeptRow[string] | undefined = ''; after !== undefined; ) {
    const rows: readonly KeptRow[] = page.all(after);
    yield rows;
    after = rows.at(-1)?.[key];
  }
}

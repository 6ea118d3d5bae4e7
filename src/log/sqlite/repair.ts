// Repairs a database while no service runs on it. `rebuildDatabase` makes the derived tables, the index and the tiles from the events;
// `repairTail` moves rows that another program appended out of the log. Both do everything or nothing.
import { isUtf8 } from 'node:buffer';
import { rmSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { leafHash } from '../../crypto/merkle.ts';
import { createFileSync } from '../../files/durable-file.ts';
import type { StoredTile } from '../../tlog/tiled-tree.ts';
import { toHex } from '../../vocabulary/values.ts';
import type { DerivedTableName } from '../derived-tables.ts';
import { storedLevel } from '../published-tree.ts';
import { streamOf } from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import { TreeCheck } from '../tree-check.ts';
import { type DatabaseFile, openDatabaseFile, reasonOf } from './database-file.ts';
import { deriveTables } from './derived-tables.ts';
import { indexEverything, WATERMARK } from './event-index.ts';
import { fsckDatabase } from './fsck.ts';
import { openReader, readMeta } from './reader.ts';
import { APPEND_ONLY, APPEND_ONLY_TRIGGERS, INDEX_TABLES, INDEXES } from './schema.ts';
import { type PositionedEvent, publishedLines, storedCheckpoint } from './stored-events.ts';

export interface RebuildSummary {
  readonly chambers: number;
  readonly ideas: number;
}

/** Throws if a line cannot be folded, lines were changed after they were published, or a service holds the file. */
export function rebuildDatabase(path: string): RebuildSummary {
  return inTransaction(path, (target, source) => {
    for (const table of INDEX_TABLES) target.exec(`DROP TABLE IF EXISTS ${table}`);
    target.exec(INDEXES);
    indexEverything(target);
    requireConsecutive(target);
    deriveTables(target, ({ chamber_id, event_id }, error) => {
      throw new Error(`event ${event_id} of chamber ${chamber_id} cannot be folded: ${reasonOf(error)}`, {
        cause: error,
      });
    });
    rebuildTiles(target, source);
    return { chambers: count(target, 'chambers'), ideas: count(target, 'ideas') };
  });
}

/** The reader opens first: it makes no file that is missing, and says why if the file is not ours. */
function inTransaction<Result>(path: string, work: (target: Database, source: Database) => Result): Result {
  const source = openReader(path);
  let file: DatabaseFile | undefined;
  try {
    file = openDatabaseFile(path);
    const { db } = file;
    return db.transaction(() => work(db, source)).immediate();
  } finally {
    source.close();
    file?.close();
  }
}

/** An index over gaps and repetitions would hide them. */
function requireConsecutive(db: Database): void {
  const broken = db.prepare<[], StreamId | null>(
    `SELECT stream FROM (
       SELECT coalesce(chamber_id, account) AS stream, event_id FROM events
     ) GROUP BY stream HAVING min(event_id) <> 1 OR max(event_id) <> count(*) OR count(*) <> count(DISTINCT event_id) LIMIT 1`,
  );
  const stream = broken.pluck().get();
  if (stream === undefined) return;
  throw new Error(`the events of ${stream} are not consecutive: chambers fsck reports the damage`);
}

/** The lines are read from `source`, because the tiles are written meanwhile. */
function rebuildTiles(db: Database, source: Database): void {
  const check = new TreeCheck(storedCheckpoint(source, readMeta(source, 'log_id') ?? ''));
  const insert = db.prepare('INSERT INTO tiles VALUES (?, ?, ?)');
  const write = (tile: StoredTile) => insert.run(storedLevel(tile), tile.index, tile.bytes);
  db.exec('DELETE FROM tiles');
  for (const { line } of publishedLines(source, check.size)) for (const tile of check.add(line)) write(tile);
  for (const tile of check.edge()) write(tile);
  const fault = check.rootFault();
  if (fault !== undefined) throw new Error(fault.problem);
}

function count(db: Database, table: DerivedTableName): number {
  return db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
}

export interface TailRepair {
  readonly removed: number;
  /** NDJSON, a row in each line, blobs in hex; null if nothing was removed. */
  readonly removedTo: string | null;
}

/**
 * Removes the rows from the first one that fsck faults to the end of the log, and saves them next to the database. Throws, with
 * nothing changed, if a row among them may be the service's own: it is sound, or its `prev` continues another one of them.
 */
export function repairTail(path: string): TailRepair {
  const firstFaults = new Map<StreamId, number>();
  let removedTo: string | null = null;
  try {
    return inTransaction(path, (target) => {
      fsckDatabase(path, ({ position, stream }) => {
        if (position !== null && stream !== null && !firstFaults.has(stream)) firstFaults.set(stream, position);
      });
      if (firstFaults.size === 0) return { removed: 0, removedTo };
      const first = Math.min(...firstFaults.values());
      const rows = foreignTail(target, first, firstFaults);
      removedTo = save(`${path}.removed-${first}.ndjson`, rows);
      removeFrom(target, first);
      return { removed: rows.length, removedTo };
    });
  } catch (error) {
    if (removedTo !== null) rmSync(removedTo);
    throw error;
  }
}

function foreignTail(
  db: Database,
  first: number,
  firstFaults: ReadonlyMap<StreamId, number>,
): readonly PositionedEvent[] {
  const rows = db
    .prepare<[number], PositionedEvent>(
      `SELECT position, chamber_id, account, event_id, CAST(line AS BLOB) AS line, signature, nodes
       FROM events WHERE position >= ? ORDER BY position`,
    )
    .all(first);
  const heads = new Map<StreamId, string>();
  for (const row of rows) {
    const stream = streamOf(row);
    const head = heads.get(stream);
    const isSound = row.position < (firstFaults.get(stream) ?? Number.POSITIVE_INFINITY);
    if (isSound || (head !== undefined && row.line.includes(`"prev":"${head}"`))) {
      throw new Error(
        `position ${first} is damaged, and position ${row.position} may be the service's own: restore a backup instead`,
      );
    }
    heads.set(stream, toHex(leafHash(row.line)));
  }
  return rows;
}

/** Durable before the rows leave the log. */
function save(path: string, rows: readonly PositionedEvent[]): string {
  const lines = rows.map(({ position, chamber_id, account, event_id, line, signature, nodes }) => {
    const text = isUtf8(line) ? line.toString() : null;
    const blobs = { line: toHex(line), signature: signature && toHex(signature), nodes: nodes && toHex(nodes) };
    return `${JSON.stringify({ position, chamber_id, account, event_id, text, ...blobs })}\n`;
  });
  createFileSync(path, lines.join(''), { mode: 0o600 });
  return path;
}

function removeFrom(db: Database, first: number): void {
  for (const trigger of APPEND_ONLY_TRIGGERS) db.exec(`DROP TRIGGER IF EXISTS ${trigger}`);
  for (const table of ['events', ...INDEX_TABLES]) db.prepare(`DELETE FROM ${table} WHERE position >= ?`).run(first);
  db.prepare(`UPDATE meta SET value = min(CAST(value AS INTEGER), ?) WHERE name = '${WATERMARK}'`).run(first - 1);
  db.exec(APPEND_ONLY);
}

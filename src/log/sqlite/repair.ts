// Removes rows that another program appended to a log, while no service runs on it: all of them or none.
import { isUtf8 } from 'node:buffer';
import { rmSync } from 'node:fs';
import { storedLeaf } from '../../crypto/stub.ts';
import { createFile } from '../../files/durable-file.ts';
import { toHex } from '../../vocabulary/values.ts';
import { fsck } from '../sql/fsck.ts';
import { type SqlTransaction, toStream } from '../sql/sql.ts';
import type { StreamId } from '../stream-id.ts';
import { APPEND_ONLY, APPEND_ONLY_TRIGGERS } from './schema.ts';
import { openSqliteLog } from './whole-log.ts';

export interface TailRepair {
  readonly removed: number;
  /** The path of an NDJSON file with one row per line and blobs in hex; null if nothing was removed. */
  readonly removedTo: string | null;
}

/**
 * Removes the rows from the first faulty one to the end of the log, and saves them next to the database. Changes nothing and throws if the
 * service may have written one of them: a row that is valid, or whose `prev` is the hash of another one of them.
 */
export async function repairTail(path: string): Promise<TailRepair> {
  const firstFaults = new Map<StreamId, number>();
  const log = openSqliteLog(path);
  let removedTo: string | null = null;
  try {
    await fsck(log, ({ position, stream }) => {
      if (position !== null && stream !== null && !firstFaults.has(stream)) firstFaults.set(stream, position);
    });
    if (firstFaults.size === 0) return { removed: 0, removedTo };
    const first = Math.min(...firstFaults.values());
    const rows = await foreignTail(log, first, firstFaults);
    removedTo = await save(`${path}.removed-${first}.ndjson`, rows);
    await removeFrom(log, first);
    await log.commit();
    return { removed: rows.length, removedTo };
  } catch (error) {
    if (removedTo !== null) rmSync(removedTo);
    throw error;
  } finally {
    await log.close();
  }
}

interface StoredRow {
  readonly position: number;
  readonly chamber_id: number | null;
  readonly account: string | null;
  readonly stream: string | number;
  readonly event_id: number;
  readonly line: Buffer;
  readonly signature: Buffer | null;
  readonly nodes: Buffer | null;
}

async function foreignTail(
  { query }: SqlTransaction,
  first: number,
  firstFaults: ReadonlyMap<StreamId, number>,
): Promise<readonly StoredRow[]> {
  const rows = await query<StoredRow>(
    `SELECT position, chamber_id, account, stream, event_id, CAST(line AS BLOB) AS line, signature, nodes
     FROM events WHERE position >= $1 ORDER BY position`,
    [first],
  );
  const heads = new Map<string | number, string>();
  for (const row of rows) {
    const { position, stream, line } = row;
    const head = heads.get(stream);
    const isSound = position < (firstFaults.get(toStream(stream)) ?? Number.POSITIVE_INFINITY);
    if (isSound || (head !== undefined && line.includes(`"prev":"${head}"`))) {
      throw new Error(
        `position ${first} is damaged, and position ${position} may be the service's own: restore a backup instead`,
      );
    }
    heads.set(stream, toHex(storedLeaf(line)));
  }
  return rows;
}

/** Writes the rows to a durable file before they are removed. */
async function save(path: string, rows: readonly StoredRow[]): Promise<string> {
  const lines = rows.map(({ position, chamber_id, account, event_id, line, signature, nodes }) => {
    const text = isUtf8(line) ? line.toString() : null;
    const blobs = { line: toHex(line), signature: signature && toHex(signature), nodes: nodes && toHex(nodes) };
    return `${JSON.stringify({ position, chamber_id, account, event_id, text, ...blobs })}\n`;
  });
  await createFile(path, lines.join(''), { mode: 0o600 });
  return path;
}

async function removeFrom(log: SqlTransaction, first: number): Promise<void> {
  for (const trigger of APPEND_ONLY_TRIGGERS) await log.run(`DROP TRIGGER IF EXISTS ${trigger}`);
  await log.query('DELETE FROM events WHERE position >= $1', [first]);
  await log.run(APPEND_ONLY);
}

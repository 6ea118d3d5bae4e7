// Copies a log to another store, of either kind: its lines in their order, its logId, and all else that is not derived, byte
// for byte. The derived tables are made again from the lines, which are checked on the way.
//
// Why history can't fork, wherever a copy is interrupted:
// 1. Before the first row is read, the source is locked: nobody else appends to it.
// 2. The target is one uncommitted transaction, or a file of another name, until it is complete and equal to the source: no
//    service can be started on it.
// 3. The source is marked as moved before the target appears, and a marked source takes no event ever again.
// So a service can be started on the source up to its mark, on the target once it has appeared, and on neither in between. Then
// the same copy is repeated: the source is as it was, and its target was never there.
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { type CopySource, type CopyTarget, KEPT_TABLES } from './copy-port.ts';
import { openPostgresSource, openPostgresTarget } from './postgres/copy.ts';
import { describeDatabase, isPostgres } from './postgres/database-url.ts';
import { openSqliteSource, openSqliteTarget } from './sqlite/copy.ts';

export interface CopySummary {
  readonly movedTo: string;
  readonly events: number;
}

/** Each is the path of an SQLite file or a postgres:// URL. Throws an Error of one line. */
export async function copyLog(from: string, to: string): Promise<CopySummary> {
  const place = isPostgres(to) ? describeDatabase(to) : resolve(to);
  const source = await (isPostgres(from) ? openPostgresSource(from) : openSqliteSource(from));
  try {
    const movedTo = await source.movedTo();
    if (movedTo !== undefined && movedTo !== place) throw new Error(`the log has moved to ${movedTo} already`);
    const target = await (isPostgres(to) ? openPostgresTarget(to) : openSqliteTarget(to));
    try {
      const written = await fingerprint(source, target);
      await target.derive();
      const found = await fingerprint(target);
      if (found.digest !== written.digest) throw new Error('the copy differs from its source');
      await source.markMoved(place);
      await target.publish();
      return { movedTo: place, events: written.events };
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** The sum covers every row, an event's with its place. The rows are written to `target` on the way. */
async function fingerprint(rowsOf: Pick<CopySource, 'events' | 'kept'>, target?: CopyTarget) {
  let sum = 0n;
  let events = 0;
  let place = 0;
  // A sum, because the order of the other rows differs between stores.
  const add = (...cells: readonly (string | number | Buffer | null)[]) => {
    const hash = createHash('sha256');
    for (const cell of cells) {
      const bytes = Buffer.isBuffer(cell) ? cell : Buffer.from(String(cell));
      hash.update(`${typeof cell} ${bytes.length} `).update(bytes);
    }
    sum += BigInt(`0x${hash.digest('hex')}`);
  };
  for await (const rows of rowsOf.events()) {
    for (const { stream, event_id, line, signature, nodes } of rows) {
      events++;
      add(++place, stream, event_id, line, signature, nodes);
    }
    await target?.writeEvents(rows);
  }
  for (const table of KEPT_TABLES) {
    for await (const rows of rowsOf.kept(table)) {
      for (const row of rows) add(table, ...Object.values(row));
      await target?.writeKept(table, rows);
    }
  }
  return { events, digest: `${sum}` };
}

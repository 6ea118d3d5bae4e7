// Copies a log to a database of either kind: its lines in order, its logId, and everything else that is not derived, byte for
// byte. The derived tables are rebuilt from the lines, which are verified in the process.
//
// Why history can't fork, no matter where a copy is interrupted:
// 1. The source is locked against appends before its first row is read.
// 2. Until the target is complete and equal to the source, it is an uncommitted transaction or a file with another name, so no
//    service can start on it.
// 3. The source is marked as moved before the target appears, and a marked source never accepts another event.
// So a service can start on the source until it is marked, on the target once it has appeared, and on neither in between. After an
// interruption in between, the operator repeats the copy: only the mark of the source has changed, and no target exists.
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { CLOCK_HIGH_WATER_MARK } from '../clock-reset.ts';
import { MOVED_TO } from '../log-id.ts';
import { rebuildDerivedTables } from './rebuild-derived-tables.ts';
import { jsonRows, type SqlValue, type Table, toStream } from './sql.ts';
import { findTreeFault } from './stored-tree.ts';
import { columnsOf, insertListed, KEPT_TABLES, META, type Row } from './tables.ts';
import {
  type NewLog,
  readMeta,
  throwFault,
  type WholeLine,
  type WholeLog,
  type WritableLog,
  writeMeta,
} from './whole-log.ts';
import { ERASURE_PENDING } from './withholding.ts';

export interface CopySummary {
  readonly movedTo: string;
  readonly events: number;
}

interface Move {
  readonly source: WritableLog;
  /** Called once no other program can move the source. */
  readonly openTarget: () => Promise<NewLog>;
  /** The target's name in messages. */
  readonly location: string;
}

/** Throws a single-line Error. */
export async function moveLog({ source, openTarget, location }: Move): Promise<CopySummary> {
  await source.blockAppends();
  await source.placeLines();
  const movedTo = await readMeta(source, MOVED_TO);
  if (movedTo !== undefined && movedTo !== location) throw new Error(`the log has already moved to ${movedTo}`);
  const target = await openTarget();
  try {
    const written = await fingerprint(source, target);
    await rebuildDerivedTables(target, { into: 'stored', onFault: throwFault });
    const fault = await findTreeFault(target);
    if (fault !== undefined) throwFault(fault);
    await target.flush();
    const found = await fingerprint(target);
    if (found.digest !== written.digest) throw new Error('the copy differs from its source');
    await writeMeta(source, MOVED_TO, location);
    await source.allowAppends(false);
    await source.commit();
    await target.commit();
    return { movedTo: location, events: written.events };
  } finally {
    await target.close();
  }
}

/** Computes a digest of every row and of each event's place. Writes the rows to `target`, if there is one. */
async function fingerprint(
  log: WholeLog,
  target?: NewLog,
): Promise<{ readonly events: number; readonly digest: string }> {
  const sum = new RowSum();
  let events = 0;
  const query = `SELECT stream, event_id, at, line, signature, nodes, line_crc, nodes_crc FROM ${log.dialect.placedLines} ORDER BY place`;
  for await (const page of log.pages<WholeLine>(query)) {
    const lines = page.map((line) => ({ ...line, stream: toStream(line.stream) }));
    for (const line of lines) {
      requireIntact(line);
      sum.add(++events, line.stream, line.event_id, line.line, line.signature, line.nodes);
    }
    await target?.writeLines(lines);
  }
  for (const table of KEPT_TABLES) {
    for await (const rows of keptRows(log, table)) {
      for (const row of rows) sum.add(table.name, ...table.columns.map(({ name }) => row[name] ?? null));
      await target?.query(insertListed(target.dialect, table), [jsonRows(columnsOf(table), rows)]);
    }
  }
  return { events, digest: sum.digest };
}

/** Adds up hashes, because the databases return the rows of tables other than `events` in different orders. */
class RowSum {
  #sum = 0n;

  get digest(): string {
    return `${this.#sum}`;
  }

  add(...cells: readonly SqlValue[]): void {
    const hash = createHash('sha256');
    for (const cell of cells) {
      const value = typeof cell === 'boolean' ? Number(cell) : cell;
      const bytes = value instanceof Uint8Array ? value : Buffer.from(String(value));
      hash.update(`${typeof value} ${bytes.length} `).update(bytes);
    }
    this.#sum += BigInt(`0x${hash.digest('hex')}`);
  }
}

function requireIntact({ stream, event_id, line, nodes, line_crc, nodes_crc }: WholeLine): void {
  if (line_crc === crc32(line) && nodes_crc === (nodes && crc32(nodes))) return;
  throw new Error(`event ${event_id} of ${stream} fails its checksum: chambers fsck reports the damage`);
}

/** Names in `meta` that describe the database rather than the log. */
const OWN_META = ['schema_version', 'copied_through', ERASURE_PENDING, MOVED_TO, CLOCK_HIGH_WATER_MARK].map(
  (name) => `'${name}'`,
);

/** Adds the log's time explicitly, because in the target the last line is not always the latest one. */
async function* keptRows(log: WholeLog, table: Table): AsyncGenerator<readonly Row[]> {
  const columns = table.columns.map(({ name }) => name);
  const condition = table === META ? `WHERE name NOT IN (${OWN_META})` : '';
  yield* log.pages<Row>(`SELECT ${columns} FROM ${table.name} ${condition}`);
  if (table === META) yield [{ name: CLOCK_HIGH_WATER_MARK, value: String(await log.lastAt()) }];
}

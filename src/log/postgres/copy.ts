// A log in PostgreSQL as the source or the target of a copy: one transaction, which a killed copy leaves undone.
import { crc32 } from 'node:zlib';
import { fromLine } from '../../vocabulary/events.ts';
import { instantOf } from '../../vocabulary/values.ts';
import { CLOCK_RESET } from '../clock-reset.ts';
import type { CopySource, CopyTarget, EventRow, KeptRow, KeptTable } from '../copy-port.ts';
import { DERIVED_TABLES } from '../derived-tables.ts';
import { MOVED_TO } from '../moved.ts';
import { bigintArray, byteaArray, textArray } from './arrays.ts';
import { foldLog } from './fold.ts';
import { toStream } from './growth.ts';
import { throwFault } from './maintenance.ts';
import { placeLines } from './order.ts';
import { CLOCK_HIGH_WATER_MARK, createSchema, MOVED_TRIGGER, readMeta, requireLog } from './schema.ts';
import { openTransaction, readRows, type Transaction } from './transaction.ts';

/** Appends of other nodes wait, and are refused once the mark is committed: a statement trigger meets each of them. */
export async function openPostgresSource(url: string): Promise<CopySource> {
  const transaction = await openTransaction(url);
  const { client, connections, close } = transaction;
  try {
    await requireLog(client, url);
    await client.query('LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE');
    // Committed by another connection: readers may place lines too.
    await placeLines(connections);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...rowsOf(transaction),
    movedTo: () => readMeta(client, MOVED_TO),
    markMoved: async (to) => {
      await client.query('INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING', [MOVED_TO, to]);
      await client.query(REFUSE_MOVED);
      await client.query('COMMIT');
    },
    close,
  };
}

/** A code that makes the nodes return 503. */
const REFUSE_MOVED = `
CREATE OR REPLACE FUNCTION refuse_moved() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'the log has moved' USING ERRCODE = 'object_not_in_prerequisite_state'; END $$;
CREATE OR REPLACE TRIGGER ${MOVED_TRIGGER} BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION refuse_moved()`;

export async function openPostgresTarget(url: string): Promise<CopyTarget> {
  const transaction = await openTransaction(url);
  const { client, close } = transaction;
  let schema: string;
  try {
    schema = await createSchema(client, url);
  } catch (error) {
    await close();
    throw error;
  }
  let place = 0;
  return {
    ...rowsOf(transaction),
    writeEvents: async (rows) => {
      await client.query(INSERT_EVENTS, [
        textArray(rows.map(({ stream }) => String(stream))),
        bigintArray(rows.map(({ event_id }) => event_id)),
        bigintArray(rows.map(({ line }) => instantOf(fromLine(line.toString()).ts))),
        byteaArray(rows.map(({ line }) => line)),
        byteaArray(rows.map(({ signature }) => signature)),
        byteaArray(rows.map(({ nodes }) => nodes)),
        bigintArray(rows.map(({ line }) => crc32(line))),
        bigintArray(rows.map(({ nodes }) => nodes && crc32(nodes))),
        bigintArray(rows.map(() => ++place)),
      ]);
    },
    writeKept: async (table, rows) => {
      for (const row of rows) await client.query({ name: table, text: WRITE_KEPT[table], values: Object.values(row) });
    },
    derive: async () => {
      await foldLog(client, schema, throwFault);
      await client.query(`ANALYZE events, places, registrations, snapshots, ${DERIVED_TABLES}`);
    },
    publish: async () => {
      await client.query('COMMIT');
    },
    close,
  };
}

const INSERT_EVENTS = `
WITH rows AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bigint[], $8::bigint[],
    $9::bigint[]) AS rows (stream, event_id, at, line, signature, nodes, line_crc, nodes_crc, place)
), placed AS (
  INSERT INTO places SELECT place, stream, event_id FROM rows
)
INSERT INTO events (stream, event_id, at, line, signature, nodes, line_crc, nodes_crc)
SELECT stream, event_id, at, line, signature, nodes, line_crc, nodes_crc FROM rows`;

const WRITE_KEPT: Readonly<Record<KeptTable, string>> = {
  meta: 'INSERT INTO meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  registrations: 'INSERT INTO registrations VALUES ($1, $2, $3, $4::int = 1)',
  contacts: 'INSERT INTO contacts VALUES ($1, $2)',
  tiles: 'INSERT INTO tiles VALUES ($1, $2, $3)',
  checkpoints: 'INSERT INTO checkpoints VALUES ($1, $2, $3)',
};

interface SealedRow extends EventRow {
  readonly line_crc: number;
  readonly nodes_crc: number | null;
}

function rowsOf({ client }: Transaction): Pick<CopySource, 'events' | 'kept'> {
  return { events: () => readEvents(client), kept: (table) => readRows<KeptRow>(client, KEPT[table]) };
}

async function* readEvents(client: Transaction['client']): AsyncGenerator<readonly EventRow[]> {
  const query = `SELECT e.stream, e.event_id::float8, line, signature, nodes, line_crc::float8, nodes_crc::float8
    FROM places JOIN events AS e USING (stream, event_id) ORDER BY place`;
  for await (const rows of readRows<SealedRow>(client, query)) {
    const events = rows.map((row) => ({ ...row, stream: toStream(String(row.stream)) }));
    for (const event of events) requireIntact(event);
    yield events;
  }
}

function requireIntact({ stream, event_id, line, nodes, line_crc, nodes_crc }: SealedRow): void {
  if (line_crc === crc32(line) && nodes_crc === (nodes && crc32(nodes))) return;
  throw new Error(`event ${event_id} of ${stream} is not as it was written: chambers fsck reports the damage`);
}

const KEPT: Readonly<Record<KeptTable, string>> = {
  meta: `SELECT name, value FROM meta WHERE name NOT IN ('schema_version', '${MOVED_TO}', '${CLOCK_HIGH_WATER_MARK}')
    UNION ALL SELECT '${CLOCK_HIGH_WATER_MARK}', greatest(
      (SELECT max(at) FROM events WHERE at > coalesce((SELECT (value::json->>'from')::bigint FROM meta WHERE name = '${CLOCK_RESET}'), 0)), (SELECT value::bigint FROM meta WHERE name = '${CLOCK_HIGH_WATER_MARK}'), 0)::text`,
  registrations: 'SELECT signature_hash, did, event_id::float8, covers_email::int FROM registrations',
  contacts: 'SELECT did, operator_email FROM contacts',
  tiles: 'SELECT level::float8, tile::float8, hashes FROM tiles',
  checkpoints: 'SELECT log_id, size::float8, note FROM checkpoints',
};

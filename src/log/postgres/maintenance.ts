// Checks and repairs of a log in PostgreSQL, as those of an SQLite file.
import type { Client } from 'pg';
import type { StoredTile } from '../../tlog/tiled-tree.ts';
import { LOG_ID } from '../../vocabulary/values.ts';
import { DERIVED_TABLES, selectDifferences } from '../derived-tables.ts';
import { COPIED_FROM } from '../found-log.ts';
import type { Renewal } from '../log-id.ts';
import { MOVED_TO } from '../moved.ts';
import type { StoredCheckpoint } from '../published-tree.ts';
import type { Fault, FsckSummary } from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import { TreeCheck, type TreeFault } from '../tree-check.ts';
import { byteaArray } from './arrays.ts';
import { foldLog } from './fold.ts';
import { toStream } from './growth.ts';
import { TILES, type TileRow, tileKeys } from './published-tree.ts';
import { MOVED_TRIGGER, readMeta, requireLog } from './schema.ts';
import { openTransaction, readRows } from './transaction.ts';

/** Nodes may run meanwhile: all of it is read at one moment. Only the first fault of each stream is reported. */
export async function fsckPostgres(url: string, report: (fault: Fault) => void): Promise<FsckSummary> {
  return withLog(url, 'REPEATABLE READ', async (client, schema) => {
    let faults = 0;
    const onFault = (fault: Fault) => {
      faults++;
      report(fault);
    };
    const note = (problem: string, stream: StreamId | null = null, eventId: number | null = null) =>
      onFault({ position: null, stream, eventId, problem });
    const logId = await readLogId(client);
    if (!LOG_ID.test(logId)) note('the log has no logId of 32 hex digits');
    // The names stand for these from here on, and for the stored tables with their schema.
    for (const table of [...DERIVED_TABLES, 'snapshots']) {
      await client.query(`CREATE TEMP TABLE ${table} (LIKE ${schema}.${table} INCLUDING INDEXES) ON COMMIT DROP`);
    }
    const { badStreams, ...counts } = await foldLog(client, schema, onFault);
    for (const [problem, query] of differences(schema)) {
      const found = await client.query<{ readonly stream: string; readonly event_id: number | null }>(query);
      for (const { stream, event_id: eventId } of found.rows) {
        const id = toStream(stream);
        if (!badStreams.has(id)) note(problem, id, eventId);
      }
    }
    const fault = LOG_ID.test(logId) ? await checkTree(client, logId) : undefined;
    const [stream, eventId] = fault === undefined ? [] : await eventAt(client, fault);
    if (fault !== undefined && !badStreams.has(stream ?? '')) note(fault.problem, stream, eventId);
    return { logId, ...counts, faults };
  });
}

async function checkTree(client: Client, logId: string): Promise<TreeFault | undefined> {
  const check = new TreeCheck(await storedCheckpoint(client, logId));
  const compare = async (tiles: readonly StoredTile[]) => {
    const { rows } = await client.query<TileRow>(TILES, [...tileKeys(tiles)]);
    for (const [i, tile] of tiles.entries()) check.compare(tile, rows[i]?.hashes ?? undefined);
  };
  await addLines(client, check, compare);
  const { rows } = await client.query<{ readonly tiles: number }>('SELECT count(*)::float8 AS tiles FROM tiles');
  return check.rootFault() ?? check.tilesFault(rows[0]?.tiles ?? 0);
}

/** The lines that the checkpoint is over, and the tiles that follow from them, some at a time. */
async function addLines(
  client: Client,
  check: TreeCheck,
  take: (tiles: readonly StoredTile[]) => Promise<void>,
): Promise<void> {
  const query = `SELECT line FROM places JOIN events USING (stream, event_id) WHERE place <= ${check.size} ORDER BY place`;
  for await (const rows of readRows<{ readonly line: Buffer }>(client, query)) {
    await take(rows.flatMap(({ line }) => check.add(line)));
  }
  await take(check.edge());
}

async function readLogId(client: Client): Promise<string> {
  return (await readMeta(client, 'log_id')) ?? '';
}

async function storedCheckpoint(client: Client, logId: string): Promise<StoredCheckpoint | undefined> {
  const query = 'SELECT size::float8, note FROM checkpoints WHERE log_id = $1';
  return (await client.query<StoredCheckpoint>(query, [logId])).rows[0];
}

async function eventAt(client: Client, { place }: TreeFault): Promise<[stream?: StreamId, eventId?: number]> {
  const query = 'SELECT stream, event_id::float8 FROM places WHERE place = $1';
  const { rows } = await client.query<{ readonly stream: string; readonly event_id: number }>(query, [place]);
  return rows.flatMap(({ stream, event_id: eventId }) => [toStream(stream), eventId]) as [StreamId?, number?];
}

/** What is wrong, and the query that finds where. */
function differences(schema: string): readonly (readonly [string, string])[] {
  const tables = DERIVED_TABLES.map((table) => {
    const different = selectDifferences(table, schema, 'pg_temp');
    const query = `SELECT chamber_id::text AS stream, NULL AS event_id FROM (${different}) AS chambers`;
    return [`table ${table} does not match the log: run chambers rebuild`, query] as const;
  });
  const all = 'SELECT stream, event_id FROM events';
  const ordered = 'SELECT stream, event_id FROM places UNION ALL SELECT stream, event_id FROM unplaced_events';
  const registered = `SELECT stream, event_id FROM events WHERE stream !~ '^[0-9]' AND position('"type":"agent.registered"'::bytea IN line) > 0`;
  const kept = 'an e-mail address or a signature is kept of a registration that is not in the log';
  return [
    ...tables,
    [
      'table snapshots does not match the log: run chambers rebuild',
      `SELECT stream, event_id::float8 FROM
         (SELECT stream, event_id FROM ${schema}.snapshots EXCEPT SELECT stream, event_id FROM events) AS rows`,
    ],
    [
      'its place in the order of all lines is missing or another event has it',
      `SELECT stream, event_id::float8 FROM ((${all} EXCEPT ALL (${ordered})) UNION ALL ((${ordered}) EXCEPT ALL ${all})) AS rows
       UNION ALL SELECT stream, event_id::float8 FROM (
         SELECT stream, event_id, lag(event_id, 1, 0) OVER (PARTITION BY stream ORDER BY place) AS before FROM places
       ) AS rows WHERE event_id <> before + 1`,
    ],
    [
      kept,
      `SELECT stream, event_id::float8 FROM (SELECT did AS stream, event_id FROM registrations EXCEPT ${registered}) AS rows`,
    ],
    [
      kept,
      `SELECT did AS stream, NULL AS event_id FROM contacts EXCEPT SELECT stream, NULL FROM (${registered}) AS rows`,
    ],
  ];
}

/** No node appends meanwhile. All or nothing; throws if a line is broken, or was changed after it was published. */
export async function rebuildPostgres(url: string): Promise<{ readonly chambers: number; readonly ideas: number }> {
  return withLog(url, 'READ COMMITTED', async (client, schema) => {
    await client.query('LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE');
    await client.query(`TRUNCATE ${[...DERIVED_TABLES, 'snapshots']}`);
    await foldLog(client, schema, throwFault);
    await rebuildTiles(client);
    const { rows } = await client.query<{ readonly chambers: number; readonly ideas: number }>(
      'SELECT (SELECT count(*)::float8 FROM chambers) AS chambers, (SELECT count(*)::float8 FROM ideas) AS ideas',
    );
    return rows[0] as (typeof rows)[number];
  });
}

async function rebuildTiles(client: Client): Promise<void> {
  const check = new TreeCheck(await storedCheckpoint(client, await readLogId(client)));
  await client.query('DELETE FROM tiles');
  await addLines(client, check, async (tiles) => {
    await client.query('INSERT INTO tiles SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])', [
      ...tileKeys(tiles),
      byteaArray(tiles.map(({ bytes }) => bytes)),
    ]);
  });
  const fault = check.rootFault();
  if (fault !== undefined) throw new Error(fault.problem);
}

export function throwFault({ stream, eventId, problem }: Fault): never {
  throw new Error(`event ${eventId} of ${stream} is damaged: ${problem}`);
}

/** An operator runs it on a restored copy before a node is started on that. Under another id, a log that has moved may take events again. */
export async function renewPostgres(
  url: string,
  { logId, former, prepare }: Renewal,
): Promise<{ readonly logId: string; readonly copiedFrom: string }> {
  return withLog(url, 'READ COMMITTED', async (client) => {
    const copiedFrom = await readLogId(client);
    // A node that still runs has written nothing after this, and writes nothing once it sees the new id.
    await client.query('LOCK TABLE events, tiles IN SHARE ROW EXCLUSIVE MODE');
    await client.query(
      `INSERT INTO meta VALUES ('log_id', $1), ('${COPIED_FROM}', $2)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [logId, copiedFrom],
    );
    await client.query('DELETE FROM meta WHERE name = $1', [MOVED_TO]);
    // The tree is published again, under the new name.
    await client.query('DELETE FROM tiles');
    if (former !== undefined) {
      await client.query(
        `INSERT INTO checkpoints VALUES ($1, $2, $3)
         ON CONFLICT (log_id) DO UPDATE SET size = excluded.size, note = excluded.note`,
        [former.logId, former.size, former.note],
      );
    }
    await client.query(`DROP TRIGGER IF EXISTS ${MOVED_TRIGGER} ON events`);
    prepare?.();
    return { logId, copiedFrom };
  });
}

async function withLog<Result>(
  url: string,
  isolation: string,
  work: (client: Client, schema: string) => Promise<Result>,
): Promise<Result> {
  const { client, close } = await openTransaction(url, isolation);
  try {
    const result = await work(client, await requireLog(client, url));
    await client.query('COMMIT');
    return result;
  } finally {
    await close();
  }
}

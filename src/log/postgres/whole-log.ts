// A log in PostgreSQL, which a program reads or writes in one transaction without time limits.
import type { Client } from 'pg';
import { DERIVED_TABLES } from '../sql/tables.ts';
import type { NewLog, WholeLog, WritableLog } from '../sql/whole-log.ts';
import { EVENT_COLUMN_NAMES, EVENT_COLUMNS, unnested } from './arrays.ts';
import { Connections, connectFirst } from './connections.ts';
import { POSTGRES } from './dialect.ts';
import { readLastAt, readNow } from './meta.ts';
import { checkPlaces, placeLines } from './places.ts';
import { requireServer } from './requirements.ts';
import { createSchema, MOVED_TRIGGER, requireLog } from './schema.ts';
import { begin } from './session.ts';
import { TABLES_WITH_TEXTS } from './withholding.ts';

const ROWS_PER_PAGE = 500;
const NO_LIMIT = 0;

/** Reads a consistent snapshot, even while nodes run. Throws a single-line Error without the password. */
export async function readPostgresLog(url: string): Promise<WholeLog> {
  const { client, close } = await openTransaction(url, requireLog, 'REPEATABLE READ');
  return { ...wholeLogOn(client), close };
}

/** Opens the log for writing. Nodes may keep running. Throws a single-line Error without the password. */
export async function openPostgresLog(url: string): Promise<WritableLog> {
  const { client, connections, close } = await openTransaction(url, requireLog);
  return {
    ...wholeLogOn(client),
    now: () => readNow(client),
    requireNoService: () => requireNoNode(client),
    blockAppends: () => execute(client, 'LOCK TABLE events, tiles IN SHARE ROW EXCLUSIVE MODE'),
    // Uses another connection, because readers may place lines too.
    async placeLines() {
      await placeLines(connections);
    },
    allowAppends: (isAllowed) => execute(client, isAllowed ? ALLOW_APPENDS : REFUSE_APPENDS),
    emptyDerivedTables: () => execute(client, `TRUNCATE ${[...DERIVED_TABLES, 'snapshots']}`),
    // The trigger on `events` recognizes stubs itself.
    allowStubs: () => {},
    commit: () => execute(client, 'COMMIT'),
    eraseBytes: async () => TABLES_WITH_TEXTS,
    close,
  };
}

/** Creates a log in an empty database. Throws a single-line Error without the password. */
export async function createPostgresLog(url: string): Promise<NewLog> {
  const { client, close } = await openTransaction(url, createSchema);
  let places = 0;
  return {
    ...wholeLogOn(client),
    async writeLines(lines) {
      await client.query(INSERT_LINES, [places, ...EVENT_COLUMNS.map((column) => column.encode(lines))]);
      places += lines.length;
    },
    flush: () => execute(client, `ANALYZE events, places, registrations, snapshots, ${DERIVED_TABLES}`),
    commit: () => execute(client, 'COMMIT'),
    close,
  };
}

interface Opened {
  readonly client: Client;
  /** Connections for other commits during the transaction. */
  readonly connections: Connections;
  readonly close: () => Promise<void>;
}

/** `prepare` creates the tables, or throws unless they exist. */
async function openTransaction(
  url: string,
  prepare: (client: Client) => Promise<void>,
  isolation?: string,
): Promise<Opened> {
  const connections = new Connections(url, 1, { responseTimeoutMillis: NO_LIMIT });
  const client = await connectFirst(connections, url, async (first) => {
    await requireServer(first);
    await begin(first, isolation);
    await prepare(first);
    return first;
  });
  return { client, connections, close: () => connections.close() };
}

async function execute(client: Client, script: string): Promise<void> {
  await client.query(script);
}

function wholeLogOn(client: Client): Omit<WholeLog, 'close'> {
  return {
    dialect: POSTGRES,
    query: async <Row>(text: string, values: readonly unknown[] = []) =>
      (await client.query(text, [...values])).rows as Row[],
    pages: (text) => pagesOf(client, text),
    run: (script) => execute(client, script),
    survivesErrors: false,
    checkDatabase: (report, badStreams) => checkPlaces(client, report, badStreams),
    lastAt: () => readLastAt(client),
  };
}

async function* pagesOf<Row>(client: Client, text: string): AsyncGenerator<readonly Row[]> {
  await client.query(`DECLARE pages NO SCROLL CURSOR FOR ${text}`);
  for (;;) {
    const { rows } = await client.query(`FETCH ${ROWS_PER_PAGE} FROM pages`);
    if (rows.length === 0) break;
    yield rows as Row[];
  }
  await client.query('CLOSE pages');
}

/** While nodes run, one of them holds the publisher's lease, which expires seconds after the last node has stopped. */
async function requireNoNode(client: Client): Promise<void> {
  const { rows } = await client.query(
    "SELECT 1 FROM leases WHERE ends_at BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'",
  );
  if (rows.length > 0) throw new Error('a node is running on the log, or was seconds ago: stop all nodes first');
}

const ALLOW_APPENDS = `DROP TRIGGER IF EXISTS ${MOVED_TRIGGER} ON events`;

/** The nodes map this error code to 503. A statement trigger also fires for their clock writes, which insert no event. */
const REFUSE_APPENDS = `
CREATE OR REPLACE FUNCTION refuse_moved() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'the log has moved' USING ERRCODE = 'object_not_in_prerequisite_state'; END $$;
CREATE OR REPLACE TRIGGER ${MOVED_TRIGGER} BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION refuse_moved()`;

const INSERT_LINES = `
WITH rows AS MATERIALIZED (SELECT * FROM ${unnested(EVENT_COLUMNS, 2)}), placed AS (
  INSERT INTO places SELECT $1::bigint + place, stream, event_id FROM rows
)
INSERT INTO events (${EVENT_COLUMN_NAMES}) SELECT ${EVENT_COLUMN_NAMES} FROM rows`;

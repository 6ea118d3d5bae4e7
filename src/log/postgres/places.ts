// The order of all lines: each line gets its place after it was committed, because commits end in another order than they begin.
//
// - Over all nodes, one transaction at a time assigns places, and each begins after the one before has ended. So a reader that
//   sees a place sees all before it, and places have no gaps.
// - An event is committed after the one before it in its stream, so a transaction that finds it unplaced finds the one before it unplaced
//   or placed. It places all that it finds of a stream.
// - Readers place the lines that they are about to read. No append waits for it.
import type pg from 'pg';
import { ForumError } from '../../vocabulary/errors.ts';
import type { Sql } from '../sql/sql.ts';
import { toStream } from '../sql/sql.ts';
import type { Fault } from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import type { Runner } from './connections.ts';

/** Any number, the same in every release. */
const ORDER_LOCK = '4848270582';
/** The number of lines in one transaction; more if the last stream among them has more. */
const PLACED_AT_ONCE = 10_000;

/** Places the unplaced lines. Returns false if that is impossible now, as while a commit waits for a standby. */
export async function placeLines(commits: Runner, reads: Sql = commits): Promise<boolean> {
  const [unplaced] = await reads.query('SELECT FROM unplaced_events LIMIT 1');
  if (unplaced === undefined) return true;
  try {
    for (let placed = PLACED_AT_ONCE; placed >= PLACED_AT_ONCE; ) placed = await commits.run(placeSome);
    return true;
  } catch (error) {
    if (error instanceof ForumError) return false;
    throw error;
  }
}

async function placeSome(client: pg.Client): Promise<number> {
  // The driver returns one result for each statement.
  const [, , placed] = (await client.query(`${ISOLATION}; ${LOCK}; ${PLACE}`)) as unknown as readonly pg.QueryResult[];
  return placed?.rowCount ?? 0;
}

/** At any other level the last statement would see only rows committed before the lock was requested. */
const ISOLATION = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED';

/**
 * The lock and the next statement come in one message, which is one transaction: a frozen node holds the lock no longer than the server
 * needs. The next statement sees everything committed before the lock was free.
 */
const LOCK = `SELECT pg_advisory_xact_lock(${ORDER_LOCK})`;

const PLACE = `
WITH moved AS (
  DELETE FROM unplaced_events WHERE stream IN (
    SELECT stream FROM (
      SELECT stream, sum(count(*)) OVER (ORDER BY stream) - count(*) AS before FROM unplaced_events GROUP BY stream
    ) AS streams WHERE before < ${PLACED_AT_ONCE}
  ) RETURNING stream, event_id
)
INSERT INTO places SELECT (SELECT coalesce(max(place), 0) FROM places)
  + row_number() OVER (ORDER BY stream, event_id), stream, event_id FROM moved`;

/** For fsck: only a log in PostgreSQL can have faults here. */
export async function checkPlaces(
  client: pg.Client,
  report: (fault: Fault) => void,
  badStreams: ReadonlySet<StreamId>,
): Promise<void> {
  const { rows } = await client.query<{ readonly stream: string; readonly event_id: number }>(MISPLACED);
  for (const { stream: name, event_id: eventId } of rows) {
    const stream = toStream(name);
    if (!badStreams.has(stream)) report({ position: null, stream, eventId, problem: PROBLEM });
  }
}

const PROBLEM = 'its place in the order of all lines is missing or another event has it';

const ALL = 'SELECT stream, event_id FROM events';
const ORDERED = 'SELECT stream, event_id FROM places UNION ALL SELECT stream, event_id FROM unplaced_events';
const MISPLACED = `SELECT stream, event_id FROM ((${ALL} EXCEPT ALL (${ORDERED})) UNION ALL ((${ORDERED}) EXCEPT ALL ${ALL})) AS rows
  UNION ALL SELECT stream, event_id FROM (
    SELECT stream, event_id, lag(event_id, 1, 0) OVER (PARTITION BY stream ORDER BY place) AS before FROM places
  ) AS rows WHERE event_id <> before + 1`;

// The order of all lines. Each line gets its place after it was committed, because transactions commit in a different order than they begin.
//
// - Across all nodes, only one transaction at a time assigns places. So a reader that sees a place sees all earlier ones, and places have no
//   gaps.
// - An event is committed after its predecessor in the stream, so a transaction that finds the event unplaced sees the predecessor too,
//   placed or unplaced. The transaction places all unplaced events that it finds in a stream.
// - Readers place the lines that they are about to read. No append waits for that.
import type pg from 'pg';
import { ForumError } from '../../vocabulary/errors.ts';
import type { Sql } from '../sql/sql.ts';
import { toStream } from '../sql/sql.ts';
import type { Fault } from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import type { Runner } from './connections.ts';

/** An arbitrary number that must be the same in every release. */
const ORDER_LOCK = '4848270582';
/** The number of lines that one transaction places. It may be exceeded by the last stream, which is placed completely. */
const LINES_PER_TRANSACTION = 10_000;

/** Places the unplaced lines. Returns false if that is impossible now, e.g. while a commit waits for a standby. */
export async function placeLines(commits: Runner, reads: Sql = commits): Promise<boolean> {
  const [unplaced] = await reads.query('SELECT FROM unplaced_events LIMIT 1');
  if (unplaced === undefined) return true;
  try {
    for (let placed = LINES_PER_TRANSACTION; placed >= LINES_PER_TRANSACTION; ) placed = await commits.run(placeSome);
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

/** At a higher level, PLACE would see only rows that were committed before the lock was requested. */
const ISOLATION = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED';

/**
 * LOCK and PLACE are sent in one message, which is one transaction, so a frozen node does not keep the lock. PLACE sees everything that was
 * committed before the lock was acquired.
 */
const LOCK = `SELECT pg_advisory_xact_lock(${ORDER_LOCK})`;

const PLACE = `
WITH moved AS (
  DELETE FROM unplaced_events WHERE stream IN (
    SELECT stream FROM (
      SELECT stream, sum(count(*)) OVER (ORDER BY stream) - count(*) AS before FROM unplaced_events GROUP BY stream
    ) AS streams WHERE before < ${LINES_PER_TRANSACTION}
  ) RETURNING stream, event_id
)
INSERT INTO places SELECT (SELECT coalesce(max(place), 0) FROM places)
  + row_number() OVER (ORDER BY stream, event_id), stream, event_id FROM moved`;

/** Checks for fsck that every event has exactly one place, in the order of its stream. */
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

const PROBLEM = 'its place in the order of all lines is missing, or belongs to another event';

const ALL = 'SELECT stream, event_id FROM events';
const ORDERED = 'SELECT stream, event_id FROM places UNION ALL SELECT stream, event_id FROM unplaced_events';
const MISPLACED = `SELECT stream, event_id FROM ((${ALL} EXCEPT ALL (${ORDERED})) UNION ALL ((${ORDERED}) EXCEPT ALL ${ALL})) AS rows
  UNION ALL SELECT stream, event_id FROM (
    SELECT stream, event_id, lag(event_id, 1, 0) OVER (PARTITION BY stream ORDER BY place) AS before FROM places
  ) AS rows WHERE event_id <> before + 1`;

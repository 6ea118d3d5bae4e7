// The order of all lines: each gets a place after they were committed, because commits end in another order than they begin.
//
// - Over all nodes, one transaction at a time assigns places, and each begins after the one before has ended. So a reader that
//   sees a place sees all before it, and places have no gaps.
// - An event is committed after the one before it in its stream, so a transaction that finds it unplaced finds the one before it unplaced
//   or placed. It places all that it finds of a stream.
// - Readers place what they are about to read. No append waits for it.
import type pg from 'pg';
import { ForumError } from '../../vocabulary/errors.ts';
import type { Sql } from '../sql/sql.ts';
import type { Runner } from './connections.ts';

/** Any number, the same in every release. */
const ORDER_LOCK = '4848270582';
/** The number of lines in one transaction; more if the last stream among them has more. */
const PLACED_AT_ONCE = 10_000;

/** Gives a place to the lines that have none. Returns false if they can't have one now, as while a commit waits for a standby. */
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

/** At any other level the last statement would see what was committed before the lock was asked for. */
const ISOLATION = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED';

/**
 * The lock comes with the next statement in one message, which is one transaction: a frozen node holds it no longer than the server
 * needs. The next statement sees all that was committed before the lock was free.
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

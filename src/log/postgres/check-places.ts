// What only a log in PostgreSQL can have wrong: the order of all lines, which is written after them.
import type { Client } from 'pg';
import { toStream } from '../sql/sql.ts';
import type { Fault } from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';

export async function checkPlaces(
  client: Client,
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

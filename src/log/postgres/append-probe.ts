// An append that is rolled back. After a failed one its success shows that moves fit again, without a move being made: so a node that a
// load balancer has left out comes back.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import type { Millis } from '../../vocabulary/values.ts';
import { requireRights } from './rights.ts';
import { begin } from './session.ts';

/** As much room as a large move takes; random bytes can't be compressed. */
const PROBE_BYTES = 65_536;

/** Throws what the append meets. A time of the present keeps the index by time as selective as it is. */
export async function probeAppend(client: Client, at: Millis): Promise<void> {
  await requireRights(client);
  await begin(client);
  try {
    const stream = `probe ${randomUUID()}`;
    await client.query('INSERT INTO events (stream, event_id, at, line, line_crc) VALUES ($1, 0, $2, $3, 0)', [
      stream,
      at,
      randomBytes(PROBE_BYTES),
    ]);
    await client.query('INSERT INTO unplaced_events VALUES ($1, 0)', [stream]);
  } finally {
    await client.query('ROLLBACK');
  }
}

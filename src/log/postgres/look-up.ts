// Heads, and the lines of signatures, read by one statement, and so at one moment. A row whose backend ended while it waited for the
// synchronous standbys is visible before they have it. So what a response may rest on is confirmed: the statement commits a message to the
// server's own log, after everything that it has seen, and waits for the standbys with it. Without any it writes nothing.
import type { Client } from 'pg';
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import type { Damages, StreamDamaged } from '../damage.ts';
import type { StreamId } from '../stream-id.ts';
import { byteaArray, textArray } from './arrays.ts';
import { toStream } from './growth.ts';
import { damageIn, type StoredLine } from './lines.ts';
import { confirmedIf } from './session.ts';

export interface LookUp {
  /** The last event of each stream asked for; 0 for one without events. */
  readonly lastEventIds: ReadonlyMap<StreamId, number>;
  /** The highest chamberId in use, 0 in an empty log. */
  readonly lastChamberId: number;
  /** The lines that hold the signatures asked for, by signatureKey. */
  readonly found: ReadonlyMap<string, string | StreamDamaged>;
}

interface Asked {
  readonly streams: readonly StreamId[];
  /** Lines that are found are confirmed. */
  readonly signatureKeys: readonly string[];
  /** Whether the heads are confirmed too; by default they are not. */
  readonly confirmsHeads?: boolean;
}

export async function lookUp(client: Client, asked: Asked, damages: Damages): Promise<LookUp> {
  const { streams, confirmsHeads = false } = asked;
  const keys = asked.signatureKeys.map((key) => Buffer.from(key, 'latin1'));
  const values = [
    textArray(streams.map(String)),
    byteaArray(keys.filter(({ length }) => length !== HIDDEN_KEY_CHARS)),
    byteaArray(keys.filter(({ length }) => length === HIDDEN_KEY_CHARS)),
    confirmsHeads,
  ];
  const { rows } = await client.query<Row>({ name: 'look-up', text: LOOK_UP, values });
  const lastEventIds = new Map<StreamId, number>();
  const found = new Map<string, string | StreamDamaged>();
  let lastChamberId = 0;
  for (const { heads, stream, key, ...stored } of rows) {
    if (heads === null) {
      found.set(key.toString('latin1'), damageIn(damages, toStream(stream), stored) ?? stored.line.toString());
      continue;
    }
    lastChamberId = Number(stored.event_id);
    for (const [index, head] of heads.split(' ').slice(0, streams.length).entries()) {
      lastEventIds.set(streams[index] as StreamId, Number(head));
    }
  }
  return { lastEventIds, lastChamberId, found };
}

/** The first row has the highest chamberId in place of an event's id. */
interface Row extends StoredLine {
  /** The heads of the streams asked for, in their order; null in the rows of lines. */
  readonly heads: string | null;
  readonly stream: string;
  readonly key: Buffer;
}

/** LIMIT keeps the planner from reading the whole table for a few keys. */
const LOOK_UP = `
WITH lines AS MATERIALIZED (
  SELECT e.stream, e.event_id, k AS key, e.line, e.line_crc
  FROM unnest($2::bytea[]) AS k, LATERAL (SELECT * FROM events WHERE signature = k LIMIT 1) AS e
  UNION ALL SELECT e.stream, e.event_id, k, e.line, e.line_crc
  FROM unnest($3::bytea[]) AS k, LATERAL (SELECT * FROM registrations WHERE signature_hash = k LIMIT 1) AS r,
    LATERAL (SELECT * FROM events WHERE stream = r.did AND event_id = r.event_id LIMIT 1) AS e
)
SELECT (SELECT coalesce(string_agg(coalesce((SELECT max(event_id) FROM events WHERE stream = s), 0)::text, ' ' ORDER BY place), '')
    FROM unnest($1::text[]) WITH ORDINALITY AS streams (s, place)) AS heads,
  NULL::text AS stream, coalesce(max(chamber_id), 0) AS event_id, NULL::bytea AS key, NULL::bytea AS line, NULL::bigint AS line_crc,
  ${confirmedIf('($4 OR EXISTS (SELECT FROM lines))')} AS confirmed_at
FROM chambers
UNION ALL SELECT NULL, lines.*, NULL FROM lines`;

// Reads heads and the lines of signatures in one statement, and so from one snapshot. If a backend ended while it waited for the synchronous
// standbys, its rows are visible before the standbys have them. So the statement confirms the rows on which a response may depend: it commits
// a message to the server's WAL, after everything that it has read, and waits for the standbys. Without standbys it writes nothing.
import type { Client } from 'pg';
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import type { DamagedStreams, StreamDamaged } from '../damage.ts';
import { ALL_CHAMBERS } from '../log.ts';
import { findDamage, type StoredLine } from '../sql/event-log.ts';
import { toStream } from '../sql/sql.ts';
import type { StreamId } from '../stream-id.ts';
import { BYTEA, encode, TEXT } from './arrays.ts';
import { confirmedIf, prepared } from './session.ts';

export interface LookUp {
  /** 0 for a stream without events. */
  readonly heads: ReadonlyMap<StreamId, number>;
  /** The lines of the signatures, by signatureKey. */
  readonly found: ReadonlyMap<string, string | StreamDamaged>;
}

interface LookUpRequest {
  readonly streams: readonly StreamId[];
  /** Lines that are found are confirmed. */
  readonly signatureKeys: readonly string[];
  /** Whether to confirm the heads too; false by default. */
  readonly confirmsHeads?: boolean;
}

export async function lookUp(client: Client, asked: LookUpRequest, damagedStreams: DamagedStreams): Promise<LookUp> {
  const keys = asked.signatureKeys.map((key) => Buffer.from(key, 'latin1'));
  const values = [
    encode(TEXT, asked.streams.map(String)),
    encode(
      BYTEA,
      keys.filter(({ length }) => length !== HIDDEN_KEY_CHARS),
    ),
    encode(
      BYTEA,
      keys.filter(({ length }) => length === HIDDEN_KEY_CHARS),
    ),
    asked.confirmsHeads ?? false,
  ];
  const { rows } = await client.query<HeadRow | FoundLine>(prepared(LOOK_UP, values));
  const heads = new Map<StreamId, number>();
  const found = new Map<string, string | StreamDamaged>();
  for (const row of rows) {
    if (row.key === null) heads.set(toStream(row.stream), Number(row.event_id));
    else found.set(row.key.toString('latin1'), findDamage(damagedStreams, row) ?? row.line.toString());
  }
  return { heads, found };
}

type HeadRow = Pick<StoredLine, 'stream' | 'event_id'> & { readonly key: null };
type FoundLine = StoredLine & { readonly key: Buffer };

/** The SQL form of withheldSignature (sql/withheld-rows.ts). */
export function withheldKey(signature: string): string {
  return `(substring(${signature} FROM 1 FOR 8) || sha256(${signature}))`;
}

/** LIMIT keeps the planner from reading the whole table for a few keys. The last SELECT adds no row; it evaluates `confirmed`. */
const LOOK_UP = `
WITH found AS MATERIALIZED (
  SELECT k AS key, e.stream, e.event_id, e.line, e.line_crc
  FROM unnest($2::bytea[]) AS k, LATERAL (SELECT * FROM events WHERE signature = k LIMIT 1) AS e
  UNION ALL SELECT k, e.stream, e.event_id, e.line, e.line_crc
  FROM unnest($3::bytea[]) AS k, LATERAL (SELECT * FROM registrations WHERE signature_hash = k LIMIT 1) AS r,
    LATERAL (SELECT * FROM events WHERE stream = r.did AND event_id = r.event_id LIMIT 1) AS e
  UNION ALL SELECT k, e.stream, e.event_id, e.line, e.line_crc
  FROM unnest($2::bytea[]) AS k, LATERAL (SELECT * FROM withheld WHERE signature = ${withheldKey('k')} LIMIT 1) AS w,
    LATERAL (SELECT * FROM events WHERE stream = w.stream AND event_id = w.event_id LIMIT 1) AS e
), confirmed AS MATERIALIZED (
  SELECT ${confirmedIf('($4 OR EXISTS (SELECT FROM found))')} AS position
)
SELECT NULL::bytea AS key, asked.stream, coalesce(CASE asked.stream
    WHEN '${ALL_CHAMBERS}' THEN (SELECT max(chamber_id) FROM chambers)
    ELSE (SELECT max(event_id) FROM events WHERE events.stream = asked.stream) END, 0) AS event_id,
  NULL::bytea AS line, NULL::bigint AS line_crc
FROM unnest($1::text[]) AS asked (stream)
UNION ALL SELECT key, stream, event_id, line, line_crc FROM found
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL FROM confirmed WHERE position = '0/0'`;

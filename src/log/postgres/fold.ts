// Every stream of the log, checked and folded from its first event on, one after another. The rows that follow from them are
// written to the derived tables, or to temporary ones that hide those in the transaction.
import { crc32 } from 'node:zlib';
import type { Client } from 'pg';
import { listingsOf } from '../../../projections/listings.ts';
import { encodeState, isSnapshotDue, STATE_VERSION } from '../../../projections/snapshot.ts';
import { fromHex, toHex } from '../../vocabulary/values.ts';
import {
  EMPTY_STREAM,
  type Fault,
  registrationKey,
  type StoredEvent,
  streamOf,
  type VerifiedStream,
  verifyEvent,
} from '../stored-stream.ts';
import { type FoldedEvent, StreamFold } from '../stream-fold.ts';
import type { StreamId } from '../stream-id.ts';
import { byteaArray } from './arrays.ts';
import { DERIVED_INSERTS, derivedRows } from './derived-rows.ts';
import { readRows } from './transaction.ts';

export interface FoldSummary {
  readonly events: number;
  readonly chambers: number;
  readonly accounts: number;
  /** Whose rows are not complete. */
  readonly badStreams: ReadonlySet<StreamId>;
}

/** `onFault` gets only the first fault of each stream. `schema` holds the stored snapshots. */
export async function foldLog(client: Client, schema: string, onFault: (fault: Fault) => void): Promise<FoldSummary> {
  const fold = new StreamFold<FoldRow, VerifiedStream>(verifyRow, (row, error) => {
    const problem = error instanceof Error ? error.message : String(error);
    onFault({ position: null, stream: streamOf(row), eventId: row.event_id, problem });
  });
  for await (const rows of readRows<FoldRow>(client, streamsQuery(schema))) {
    const derived: Parameters<typeof derivedRows>[0][number][] = [];
    const registered = new Map<string, FoldRow>();
    for (const row of rows) {
      const folded = fold.add(row);
      if (folded === undefined) continue;
      const key = registrationKey(folded.after.event);
      if (key !== undefined) registered.set(key.toString('hex'), row);
      derived.push({ entry: rowsOf(folded), lead: '' });
    }
    for (const [part, json] of derivedRows(derived)) {
      await client.query(`WITH ${DERIVED_INSERTS[part]('$1', 'IS NOT NULL')} SELECT`, [json]);
    }
    for (const row of await unremembered(client, registered)) {
      fold.fail(row, new Error('its signature is not in the table registrations'));
    }
  }
  await client.query(
    'UPDATE members SET is_open = false FROM chambers WHERE is_committed AND members.chamber_id = chambers.chamber_id',
  );
  return fold;
}

function rowsOf({ stream, before, after: { chamber, account, headHash } }: FoldedEvent<VerifiedStream>) {
  const state = chamber ?? account;
  const snapshot =
    state !== null && isSnapshotDue(state)
      ? { eventId: state.lastEventId, leaf: fromHex(headHash), state: encodeState(state) }
      : undefined;
  return { stream, listings: chamber === null ? [] : listingsOf(before?.chamber ?? null, chamber), snapshot };
}

interface FoldRow extends StoredEvent {
  readonly at: number;
  readonly line_crc: number;
  readonly nodes_crc: number | null;
  /** Those of the stream's snapshot, if it is of this event. */
  readonly version: number | null;
  readonly leaf: Buffer | null;
  readonly state: string | null;
  readonly state_crc: number | null;
}

/** The columns are read as numbers, because bigint would be text. */
function streamsQuery(schema: string): string {
  return `SELECT CASE WHEN e.stream ~ '^[0-9]' THEN e.stream::float8 END AS chamber_id,
      CASE WHEN e.stream !~ '^[0-9]' THEN e.stream END AS account, e.event_id::float8, at::float8, line, signature, nodes,
      line_crc::float8, nodes_crc::float8, version::float8, leaf, state, crc::float8 AS state_crc
    FROM events AS e LEFT JOIN ${schema}.snapshots AS s ON s.stream = e.stream AND s.event_id = e.event_id
    ORDER BY e.stream, e.event_id`;
}

function verifyRow(before: VerifiedStream | null, row: FoldRow): VerifiedStream {
  const { line, nodes, at, line_crc: lineCrc, nodes_crc: nodesCrc, version, leaf, state } = row;
  const after = verifyEvent(before ?? EMPTY_STREAM, row);
  if (at !== after.at) throw new Error("column at is not the line's ts");
  if (lineCrc !== crc32(line) || nodesCrc !== (nodes && crc32(nodes))) {
    throw new Error('its checksums do not match its line and its tree nodes');
  }
  // One of another version is dropped when it is met.
  const folded = after.chamber ?? after.account;
  if (state === null || folded === null || version !== STATE_VERSION) return after;
  const isRight = state === encodeState(folded) && leaf && toHex(leaf) === after.headHash;
  if (!isRight || row.state_crc !== crc32(state)) {
    throw new Error('table snapshots does not match the log: run chambers rebuild');
  }
  return after;
}

/** Returns the registrations that the table lacks; they come by the hash of their signature. */
async function unremembered(client: Client, registered: ReadonlyMap<string, FoldRow>): Promise<readonly FoldRow[]> {
  if (registered.size === 0) return [];
  const { rows } = await client.query<{ readonly hash: string; readonly did: string; readonly event_id: number }>(
    `SELECT encode(signature_hash, 'hex') AS hash, did, event_id::float8 FROM registrations WHERE signature_hash = ANY ($1::bytea[])`,
    [byteaArray([...registered.keys()].map((hash) => Buffer.from(hash, 'hex')))],
  );
  const remembered = new Set(rows.map(({ hash, did, event_id }) => `${hash} ${did} ${event_id}`));
  return [...registered].flatMap(([hash, row]) =>
    remembered.has(`${hash} ${row.account} ${row.event_id}`) ? [] : [row],
  );
}

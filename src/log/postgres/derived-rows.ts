// The rows of the derived tables: as JSON parameters of a statement, and what the statement does with them.
import { crc32 } from 'node:zlib';
import type { Listing } from '../../../projections/listings.ts';
import { STATE_VERSION } from '../../../projections/snapshot.ts';
import { unreachable } from '../../vocabulary/unreachable.ts';
import { DEADLINES } from '../../vocabulary/values.ts';
import type { LogEntry } from '../log.ts';
import { encodeChamber, encodeTurns } from '../pace-rows.ts';

type Derived = Pick<LogEntry, 'stream' | 'listings' | 'snapshot'>;

export const DERIVED_TABLES = ['chambers', 'ideas', 'members', 'turns', 'snapshots'] as const;
type DerivedTable = (typeof DERIVED_TABLES)[number];

/** As JSON, since most batches have few: of each table that has rows, the latest of a key, with its lead. */
export function derivedRows(
  rows: readonly { readonly entry: Derived; readonly lead: string }[],
): readonly (readonly [table: DerivedTable, json: string])[] {
  const tables: Readonly<Record<DerivedTable, Map<string | number, object>>> = {
    chambers: new Map(),
    ideas: new Map(),
    members: new Map(),
    turns: new Map(),
    snapshots: new Map(),
  };
  for (const { entry, lead } of rows) {
    const { stream, listings, snapshot } = entry;
    for (const row of listings) tables[row.table].set(keyOf(row), { lead, ...columnsOf(row) });
    if (snapshot === undefined) continue;
    const { eventId, state } = snapshot;
    const leaf = Buffer.from(snapshot.leaf).toString('hex');
    tables.snapshots.set(stream, {
      lead,
      stream: String(stream),
      eventId,
      version: STATE_VERSION,
      crc: crc32(state),
      state,
      leaf,
    });
  }
  const written = DERIVED_TABLES.filter((name) => tables[name].size > 0);
  return written.map((name) => [name, JSON.stringify([...tables[name].values()])]);
}

function keyOf(row: Listing): string | number {
  if (row.table === 'ideas') return `${row.idea.chamberId} ${row.idea.slot}`;
  return row.table === 'members' ? `${row.chamberId} ${row.did}` : row.chamberId;
}

/** Texts of agents only inside of JSON, where U+0000, which PostgreSQL's text can't hold, is escaped. */
function columnsOf(row: Listing): object {
  switch (row.table) {
    case 'chambers': {
      const { chamberId, creatorDid, ends, isCommitted, isSettled } = row;
      return { chamberId, creatorDid, ...ends, isCommitted, isSettled, listing: encodeChamber(row) };
    }
    case 'ideas': {
      const { chamberId, slot, ticker, creatorDid, graduatedAt } = row.idea;
      const { proposedAt } = row;
      return { chamberId, slot, ticker, creatorDid, proposedAt, graduatedAt, view: JSON.stringify(row.idea) };
    }
    case 'members':
      return row;
    case 'turns':
      return { chamberId: row.chamberId, turn: encodeTurns(row.turns) };
    default:
      return unreachable(row);
  }
}

/** They hold the effective ends of the phases. */
const END_COLUMNS = [
  'lobby_deadline',
  'proposal_deadline',
  'debate_deadline',
  'allocate_commit_deadline',
  'allocate_reveal_deadline',
];

/** Parts of a WITH that write `rows`, a table's parameter. Those rows count whose lead is `won`. */
export const DERIVED_INSERTS: Readonly<Record<DerivedTable, (rows: string, won: string) => string>> = {
  chambers: (rows, won) => `new_chambers AS (
  INSERT INTO chambers SELECT "chamberId", "creatorDid", ${DEADLINES.map((name) => `"${name}"`)}, "isCommitted", "isSettled", listing
  FROM json_to_recordset(${rows}::json) AS rows (lead text, "chamberId" bigint, "creatorDid" text,
    ${DEADLINES.map((name) => `"${name}" bigint`)}, "isCommitted" boolean, "isSettled" boolean, listing text)
  WHERE lead ${won}
  ON CONFLICT (chamber_id) DO UPDATE SET listing = excluded.listing, is_committed = excluded.is_committed,
    is_settled = excluded.is_settled, ${END_COLUMNS.map((name) => `${name} = excluded.${name}`)}
), closed_members AS (
  UPDATE members SET is_open = false
  FROM json_to_recordset(${rows}::json) AS rows (lead text, "chamberId" bigint, "isCommitted" boolean)
  WHERE lead ${won} AND "isCommitted" AND members.chamber_id = "chamberId" AND is_open
)`,
  ideas: (rows, won) => `new_ideas AS (
  INSERT INTO ideas SELECT "chamberId", slot, ticker, "creatorDid", "proposedAt", "graduatedAt", view
  FROM json_to_recordset(${rows}::json) AS rows (lead text, "chamberId" bigint, slot bigint, ticker text, "creatorDid" text,
    "proposedAt" bigint, "graduatedAt" text, view text)
  WHERE lead ${won}
  ON CONFLICT (chamber_id, slot) DO UPDATE SET graduated_at = excluded.graduated_at, view = excluded.view
)`,
  members: (rows, won) => `new_members AS (
  INSERT INTO members SELECT did, "chamberId", "turnOrder", "hasCommitted", "hasRevealed", true
  FROM json_to_recordset(${rows}::json) AS rows (lead text, did text, "chamberId" bigint, "turnOrder" bigint,
    "hasCommitted" boolean, "hasRevealed" boolean)
  WHERE lead ${won}
  ON CONFLICT (did, chamber_id) DO UPDATE SET turn_order = excluded.turn_order, has_committed = excluded.has_committed,
    has_revealed = excluded.has_revealed
)`,
  turns: (rows, won) => `new_turns AS (
  INSERT INTO turns SELECT "chamberId", turn
  FROM json_to_recordset(${rows}::json) AS rows (lead text, "chamberId" bigint, turn text)
  WHERE lead ${won}
  ON CONFLICT (chamber_id) DO UPDATE SET turn = excluded.turn
)`,
  snapshots: (rows, won) => `new_snapshots AS (
  INSERT INTO snapshots SELECT stream, "eventId", version, decode(leaf, 'hex'), state, crc
  FROM json_to_recordset(${rows}::json) AS rows (lead text, stream text, "eventId" bigint, version bigint, leaf text,
    state text, crc bigint)
  WHERE lead ${won}
  ON CONFLICT (stream) DO UPDATE SET event_id = excluded.event_id, version = excluded.version, leaf = excluded.leaf,
    state = excluded.state, crc = excluded.crc WHERE snapshots.event_id <= excluded.event_id
)`,
};

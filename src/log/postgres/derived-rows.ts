// The rows of the derived tables and of snapshots: as JSON parameters of a statement, and what the statement does with them.
import { crc32 } from 'node:zlib';
import type { Listing } from '../../../projections/listings.ts';
import { STATE_VERSION } from '../../../projections/snapshot.ts';
import { type ColumnTypes, rowOf, TABLES, upsert } from '../derived-tables.ts';
import type { LogEntry } from '../log.ts';

type Derived = Pick<LogEntry, 'stream' | 'listings' | 'snapshot'>;

export const COLUMN_TYPES: ColumnTypes = {
  bigint: 'bigint',
  text: 'text COLLATE "C"',
  boolean: 'boolean',
  json: 'text',
  options: () => '',
};

const KINDS = Object.keys(TABLES) as readonly Listing['kind'][];
/** What a parameter holds the rows of. */
const PARTS = [...KINDS, 'snapshot'] as const;
type DerivedPart = (typeof PARTS)[number];

/** The rows as JSON, since most batches have few: of each table that has rows, the latest of a key, with its lead. */
export function derivedRows(
  rows: readonly { readonly entry: Derived; readonly lead: string }[],
): readonly (readonly [part: DerivedPart, json: string])[] {
  const byPart = new Map<DerivedPart, Map<string | number, object>>(PARTS.map((part) => [part, new Map()]));
  for (const { entry, lead } of rows) {
    const { stream, listings, snapshot } = entry;
    for (const listing of listings) {
      const row = rowOf(listing);
      const key = TABLES[listing.kind].key.map((name) => row[name]).join(' ');
      byPart.get(listing.kind)?.set(key, { lead, ...row });
    }
    if (snapshot === undefined) continue;
    const { eventId, state } = snapshot;
    const leaf = Buffer.from(snapshot.leaf).toString('hex');
    const row = { stream: String(stream), eventId, version: STATE_VERSION, crc: crc32(state), state, leaf };
    byPart.get('snapshot')?.set(stream, { lead, ...row });
  }
  const written = [...byPart].filter(([, found]) => found.size > 0);
  return written.map(([part, found]) => [part, JSON.stringify([...found.values()])]);
}

type Insert = (rows: string, won: string) => string;

/** Parts of a WITH that write `rows`, a parameter. Those rows count whose lead is `won`. */
export const DERIVED_INSERTS: Readonly<Record<DerivedPart, Insert>> = {
  chamber: (rows, won) => `${insertOf('chamber')(rows, won)}, closed_members AS (
  UPDATE members SET is_open = false
  FROM json_to_recordset(${rows}::json) AS rows (lead text, chamber_id bigint, is_committed boolean)
  WHERE lead ${won} AND is_committed AND members.chamber_id = rows.chamber_id AND is_open
)`,
  idea: insertOf('idea'),
  member: insertOf('member'),
  turns: insertOf('turns'),
  snapshot: (rows, won) => `new_snapshots AS (
  INSERT INTO snapshots SELECT stream, "eventId", version, decode(leaf, 'hex'), state, crc
  FROM json_to_recordset(${rows}::json) AS rows (lead text, stream text, "eventId" bigint, version bigint, leaf text,
    state text, crc bigint)
  WHERE lead ${won}
  ON CONFLICT (stream) DO UPDATE SET event_id = excluded.event_id, version = excluded.version, leaf = excluded.leaf,
    state = excluded.state, crc = excluded.crc WHERE snapshots.event_id <= excluded.event_id
)`,
};

function insertOf(kind: Listing['kind']): Insert {
  const { name, columns } = TABLES[kind];
  const members = columns.map((column) => `${column.name} ${column.type === 'json' ? 'text' : column.type}`);
  return (rows, won) => {
    const source = `SELECT ${columns.map((column) => column.name)}
  FROM json_to_recordset(${rows}::json) AS rows (lead text, ${members}) WHERE lead ${won}`;
    return `new_${name} AS (${upsert(kind, source)})`;
  };
}

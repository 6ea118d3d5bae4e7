// The tables that follow from the lines, in SQLite. They can be made again at any time.
import type { Database, Statement } from 'better-sqlite3';
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { type Listing, listingsOf } from '../../../projections/listings.ts';
import { encodeState, isSnapshotDue } from '../../../projections/snapshot.ts';
import { leafHash } from '../../crypto/merkle.ts';
import { type ChamberEvent, fromLine } from '../../vocabulary/events.ts';
import {
  type ColumnTypes,
  type ColumnValue,
  createDerivedTables,
  DERIVED_TABLES,
  rowOf,
  TABLES,
  upsert,
} from '../derived-tables.ts';
import { StreamFold } from '../stream-fold.ts';
import { CHAMBER_PHASES, fillPhases } from './chamber-phases.ts';
import { Snapshots } from './snapshots.ts';
import { type PositionedEvent, positionsByStream } from './stored-events.ts';

/**
 * Derived too, but there are several right contents: a row of a phase may be overdue, and a snapshot may be missing. Those of accounts
 * are missing here, until the accounts are folded.
 */
export const LAGGING_TABLES = ['chamber_phases', 'snapshots'] as const;

/** The folded state of a stream after an event: a cold stream is folded from here. A stream is as in `stream_events`. */
export const SNAPSHOTS = `
CREATE TABLE snapshots (
  stream ANY PRIMARY KEY NOT NULL,
  event_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  leaf BLOB NOT NULL,
  state TEXT NOT NULL,
  checksum BLOB NOT NULL
) STRICT;
`;

const COLUMN_TYPES: ColumnTypes = {
  bigint: 'INTEGER',
  text: 'TEXT',
  boolean: 'INTEGER',
  json: 'TEXT',
  // A key of one number is the row's own.
  options: (keyColumns) => (keyColumns === 1 ? 'STRICT' : 'STRICT, WITHOUT ROWID'),
};

export const DERIVED = `
${createDerivedTables(COLUMN_TYPES)}
CREATE INDEX ideas_by_creator ON ideas (creator_did, graduated_at);
CREATE INDEX members_open ON members (did, chamber_id, turn_order, has_committed, has_revealed) WHERE is_open;
${CHAMBER_PHASES} ${SNAPSHOTS}
`;

/** The tables of the connection alone; they hide those of the file. */
export const TEMPORARY = createDerivedTables(COLUMN_TYPES, 'temp.');

/** Writes rows of the tables that the lines alone determine. */
export class DerivedRows {
  readonly #upserts: ReadonlyMap<Listing['kind'], Statement<(string | number | null)[]>>;
  readonly #closeMembers: Statement<[number]>;

  constructor(db: Database) {
    const kinds = Object.keys(TABLES) as readonly Listing['kind'][];
    this.#upserts = new Map(kinds.map((kind) => [kind, db.prepare(upsert(kind, `VALUES (${placesOf(kind)})`))]));
    this.#closeMembers = db.prepare('UPDATE members SET is_open = false WHERE chamber_id = ? AND is_open');
  }

  write(listing: Listing): void {
    const row = rowOf(listing);
    const { columns } = TABLES[listing.kind];
    this.#upserts.get(listing.kind)?.run(...columns.map(({ name }) => toStored(row[name] ?? null)));
    if (listing.kind === 'chamber' && listing.isCommitted) this.#closeMembers.run(listing.chamberId);
  }
}

function placesOf(kind: Listing['kind']): readonly string[] {
  return TABLES[kind].columns.map(() => '?');
}

/** SQLite has no booleans. */
export function toStored(value: ColumnValue): string | number | null {
  return typeof value === 'boolean' ? Number(value) : value;
}

const EVENTS_PER_REPORT = 2_000;

/** No more of an event is read than this: the rest of its row may be damaged. */
type StoredLine = Pick<PositionedEvent, 'chamber_id' | 'account' | 'event_id' | 'line'>;

/**
 * Makes the tables from the events, within the caller's transaction: one chamber after another, so that one state is in
 * memory at a time. `onBroken` gets each event that cannot be folded; the rest of its chamber is left out.
 */
export function deriveTables(
  db: Database,
  onBroken: (event: StoredLine, error: unknown) => void,
  onEvents: (events: number) => void = () => {},
): void {
  for (const table of [...DERIVED_TABLES, ...LAGGING_TABLES]) db.exec(`DROP TABLE IF EXISTS ${table}`);
  db.exec(DERIVED);
  const rows = new DerivedRows(db);
  const snapshots = new Snapshots(db);
  const select = db.prepare<[number], StoredLine>(
    'SELECT chamber_id, account, event_id, CAST(line AS BLOB) AS line FROM events WHERE position = ?',
  );
  const fold = new StreamFold<StoredLine, ChamberState>(
    (before, { line }) => evolveChamber(before, fromLine(line.toString()) as ChamberEvent),
    onBroken,
  );
  let due: { readonly state: ChamberState; readonly line: Buffer } | undefined;
  const writeDue = () => {
    if (due === undefined) return;
    const { state, line } = due;
    snapshots.write(state.chamberId, { eventId: state.lastEventId, leaf: leafHash(line), state: encodeState(state) });
    due = undefined;
  };
  for (const position of positionsByStream(db, 'chamber_id')) {
    const event = select.get(position) as StoredLine;
    const folded = fold.add(event);
    if (fold.events % EVENTS_PER_REPORT === 0) onEvents(fold.events);
    if (folded === undefined) continue;
    const { before, after } = folded;
    if (before === null) writeDue();
    for (const listing of listingsOf(before, after)) rows.write(listing);
    if (isSnapshotDue(after)) due = { state: after, line: event.line };
  }
  writeDue();
  fillPhases(db);
}

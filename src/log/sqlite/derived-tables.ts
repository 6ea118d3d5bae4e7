// The tables that follow from the lines: what lists, look-ups and cold starts need without folding every chamber. They can be
// made anew at any time.
import type { Database } from 'better-sqlite3';
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { listingsOf } from '../../../projections/listings.ts';
import { encodeState, isSnapshotDue } from '../../../projections/snapshot.ts';
import { leafHash } from '../../crypto/merkle.ts';
import { type ChamberEvent, fromLine } from '../../vocabulary/events.ts';
import { CHAMBER_PHASES, placeChambers } from './chamber-phases.ts';
import { readClock } from './clock.ts';
import { Listings } from './listings.ts';
import { Snapshots } from './snapshots.ts';

/** The tables that the lines alone determine. */
export const DERIVED_TABLES = ['chambers', 'ideas', 'members', 'turns'] as const;
/**
 * Derived too, but there are several right contents: a row of a phase may be overdue, and a snapshot may be missing. Those of accounts
 * are missing here, until the accounts are folded.
 */
export const LAGGING_TABLES = ['chamber_phases', 'snapshots'] as const;

/** Of the folded state of a stream after an event: a cold stream is folded from here. A stream is as in `stream_events`. */
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

export const DERIVED = `
CREATE TABLE chambers (
  chamber_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  creator_did TEXT NOT NULL,
  -- The effective ends of the phases.
  lobby_deadline INTEGER NOT NULL,
  proposal_deadline INTEGER NOT NULL,
  debate_deadline INTEGER NOT NULL,
  allocate_commit_deadline INTEGER NOT NULL,
  allocate_reveal_deadline INTEGER NOT NULL,
  member_count INTEGER NOT NULL,
  turn_seconds INTEGER,
  max_members INTEGER,
  is_committed INTEGER NOT NULL,
  is_settled INTEGER NOT NULL,
  -- JSON, only of chambers with rounds or movesPerTurn: these two, and the deadlines.
  pace TEXT
) STRICT;
CREATE INDEX chambers_open_by_creator ON chambers (creator_did) WHERE is_committed = 0;
CREATE INDEX chambers_unsettled ON chambers (allocate_reveal_deadline) WHERE is_settled = 0;
CREATE INDEX chambers_settled ON chambers (allocate_reveal_deadline) WHERE is_settled = 1;
CREATE TABLE ideas (
  chamber_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  ticker TEXT NOT NULL COLLATE NOCASE,
  creator_did TEXT NOT NULL,
  proposed_at INTEGER NOT NULL,
  graduated_at TEXT,
  view TEXT NOT NULL,
  PRIMARY KEY (chamber_id, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX ideas_by_ticker ON ideas (ticker, graduated_at, proposed_at, chamber_id);
CREATE INDEX ideas_graduated ON ideas (graduated_at) WHERE graduated_at IS NOT NULL;
CREATE INDEX ideas_of_chamber ON ideas (chamber_id, ticker, graduated_at, proposed_at);
CREATE INDEX ideas_of_creator ON ideas (creator_did, graduated_at);
CREATE TABLE members (
  did TEXT NOT NULL,
  chamber_id INTEGER NOT NULL,
  turn_order INTEGER,
  has_committed INTEGER NOT NULL,
  has_revealed INTEGER NOT NULL,
  is_open INTEGER NOT NULL,
  PRIMARY KEY (did, chamber_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_open ON members (did, chamber_id, turn_order, has_committed, has_revealed) WHERE is_open = 1;
CREATE INDEX members_by_turn ON members (chamber_id, turn_order);
CREATE TABLE turns (
  chamber_id INTEGER PRIMARY KEY,
  phase TEXT,
  turn_order INTEGER NOT NULL,
  since INTEGER NOT NULL,
  -- JSON: silent, spoken and missed, where one of them is set.
  pace TEXT
) STRICT;
${CHAMBER_PHASES} ${SNAPSHOTS}
`;

const EVENTS_PER_REPORT = 2_000;

interface StoredLine {
  readonly chamber_id: number;
  readonly event_id: number;
  /** Any bytes. */
  readonly line: Buffer;
}

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
  const listings = new Listings(db);
  const snapshots = new Snapshots(db);
  const positions = db.prepare<[], number>(
    'SELECT position FROM events WHERE chamber_id IS NOT NULL ORDER BY chamber_id, event_id, position',
  );
  const select = db.prepare<[number], StoredLine>(
    'SELECT chamber_id, event_id, CAST(line AS BLOB) AS line FROM events WHERE position = ?',
  );
  let chamberId: number | undefined;
  let state: ChamberState | null = null;
  let due: { readonly state: ChamberState; readonly line: Buffer } | undefined;
  const writeDue = () => {
    if (due === undefined) return;
    const { state: folded, line } = due;
    const snapshot = { eventId: folded.lastEventId, leaf: leafHash(line), state: encodeState(folded) };
    snapshots.write(folded.chamberId, snapshot);
    due = undefined;
  };
  let brokenId: number | undefined;
  let events = 0;
  for (const position of positions.pluck().all()) {
    if (++events % EVENTS_PER_REPORT === 0) onEvents(events);
    const event = select.get(position) as StoredLine;
    if (event.chamber_id === brokenId) continue;
    if (event.chamber_id !== chamberId) {
      writeDue();
      state = null;
      chamberId = event.chamber_id;
    }
    try {
      const before: ChamberState | null = state;
      state = evolveChamber(before, fromLine(event.line.toString()) as ChamberEvent);
      for (const listing of listingsOf(before, state)) listings.write(listing, state.lastAt);
      if (isSnapshotDue(state)) due = { state, line: event.line };
    } catch (error) {
      onBroken(event, error);
      brokenId = event.chamber_id;
    }
  }
  writeDue();
  fillPhases(db);
}

export function fillPhases(db: Database): void {
  db.exec('DELETE FROM chamber_phases');
  placeChambers(db, readClock(db));
}

// The chambers by phase, for GET /chambers?phase=. A phase changes with the clock and not with an event, so a row may be
// overdue: its phase is that of an earlier time, and `next_deadline` has passed. Why a query is right all the same:
//  1. A row is never ahead of the log's clock: the clock is persisted before a row advances to it, and the clock never falls.
//  2. So a row whose `next_deadline` is null or still to come holds the phase of now, and every other row is overdue.
//  3. The candidates of a query are a page of the first kind, by their stored phase, and the overdue rows unless they are older
//     than a full page. Each is tested against its deadlines, newest first, until the page is full.
// Overdue rows advance in steps of a bounded size, soon or late.
import type { Database, Statement } from 'better-sqlite3';
import type { ChamberListing } from '../../../projections/listings.ts';
import { type PhaseEnds, phaseBy } from '../../../projections/phase.ts';
import { DEADLINES, type Millis, PHASES, type Phase } from '../../vocabulary/values.ts';
import type { ListingRow, PhaseQuery } from '../lists.ts';
import { readClock } from './clock.ts';

export const CHAMBER_PHASES = `
CREATE TABLE chamber_phases (
  chamber_id INTEGER PRIMARY KEY,
  phase TEXT NOT NULL,
  next_deadline INTEGER
) STRICT;
CREATE INDEX chambers_by_phase ON chamber_phases (phase, chamber_id, next_deadline);
CREATE INDEX chambers_by_deadline ON chamber_phases (next_deadline) WHERE next_deadline IS NOT NULL;
`;

/** The deadlines that a clock ends a phase at: the last phase before COMMITTED waits for an event. */
const PHASE_ENDS = [
  ['LOBBY', 'lobby_deadline'],
  ['PROPOSAL', 'proposal_deadline'],
  ['DEBATE', 'debate_deadline'],
  ['ALLOCATE_COMMIT', 'allocate_commit_deadline'],
] as const;

/** projections/phase.ts in SQL, over a row of `chambers`. */
const PHASE_NOW = `CASE WHEN is_committed = 1 THEN 'COMMITTED'
  ${PHASE_ENDS.map(([phase, end]) => `WHEN @now < ${end} THEN '${phase}'`).join(' ')} ELSE 'ALLOCATE_REVEAL' END`;
const NEXT_DEADLINE = `CASE WHEN is_committed = 1 THEN NULL
  ${PHASE_ENDS.map(([, end]) => `WHEN @now < ${end} THEN ${end}`).join(' ')} END`;

const NEVER = Number.MAX_SAFE_INTEGER;

/** Fills the table from `chambers`, as of the log's clock. */
export function fillPhases(db: Database): void {
  db.exec('DELETE FROM chamber_phases');
  const fill = db.prepare(`INSERT INTO chamber_phases SELECT chamber_id, ${PHASE_NOW}, ${NEXT_DEADLINE} FROM chambers`);
  fill.run({ now: readClock(db) });
}

/** Whether a row may be what the service wrote for the chamber until `now`. */
export function isPhaseRow({ ends, isCommitted }: ChamberListing, row: PhaseRow | undefined, now: Millis): boolean {
  if (row === undefined) return false;
  const phase = PHASES.indexOf(row.phase);
  if (isCommitted || row.phase === 'COMMITTED')
    return isCommitted && row.phase === 'COMMITTED' && row.next_deadline === null;
  const before = DEADLINES[phase - 1];
  const hasBegun = phase === 0 || (before !== undefined && ends[before] <= now);
  return hasBegun && row.next_deadline === nextDeadline(ends, row.phase);
}

function nextDeadline(ends: PhaseEnds, phase: Phase): Millis | null {
  const name = DEADLINES[PHASES.indexOf(phase)];
  return name === undefined || phase === 'ALLOCATE_REVEAL' ? null : ends[name];
}

export interface PhaseRow {
  readonly phase: Phase;
  readonly next_deadline: Millis | null;
}

export class ChamberPhases {
  readonly #add: Statement<[number, Phase, Millis | null]>;
  readonly #move: Statement<[number, Phase, Millis | null]>;
  readonly #commit: Statement<[number]>;
  readonly #advance: Statement<[{ now: Millis; limit: number }]>;
  readonly #list: Statement<[PhaseQuery], ListingRow>;

  constructor(db: Database) {
    this.#add = db.prepare('INSERT INTO chamber_phases VALUES (?, ?, ?) ON CONFLICT DO NOTHING');
    this.#move = db.prepare('INSERT OR REPLACE INTO chamber_phases VALUES (?, ?, ?)');
    this.#commit = db.prepare(
      "UPDATE chamber_phases SET phase = 'COMMITTED', next_deadline = NULL WHERE chamber_id = ?",
    );
    this.#advance = db.prepare(
      `UPDATE chamber_phases SET (phase, next_deadline) =
         (SELECT ${PHASE_NOW}, ${NEXT_DEADLINE} FROM chambers WHERE chambers.chamber_id = chamber_phases.chamber_id)
       WHERE chamber_id IN
         (SELECT chamber_id FROM chamber_phases WHERE next_deadline <= @now ORDER BY next_deadline LIMIT @limit)`,
    );
    this.#list = db.prepare(
      `WITH
         current AS MATERIALIZED (
           SELECT chamber_id FROM chamber_phases
           WHERE phase = @phase AND chamber_id < @before AND @now < coalesce(next_deadline, ${NEVER})
           ORDER BY chamber_id DESC LIMIT @limit),
         overdue AS (
           SELECT chamber_id FROM chamber_phases INDEXED BY chambers_by_deadline
           WHERE next_deadline <= @now AND @phase NOT IN ('LOBBY', 'COMMITTED') AND +chamber_id < @before
             AND +chamber_id > (SELECT iif(count(*) = @limit, min(chamber_id), 0) FROM current))
       SELECT listing FROM chambers
       WHERE chamber_id IN (SELECT * FROM current UNION ALL SELECT * FROM overdue) AND ${PHASE_NOW} = @phase
       ORDER BY chamber_id DESC LIMIT @limit`,
    );
  }

  /** Writes what an event at `at` has made of the chamber. */
  write({ chamberId, ends, rounds, isCommitted }: ChamberListing, at: Millis): void {
    if (isCommitted) {
      this.#commit.run(chamberId);
      return;
    }
    const phase = phaseBy(ends, isCommitted, at);
    // An event may end a phase with rounds, or let it end sooner.
    const write = rounds === null ? this.#add : this.#move;
    write.run(chamberId, phase, nextDeadline(ends, phase));
  }

  /** The chambers that are in the phase at `now`, newest first. */
  list(query: PhaseQuery): readonly ListingRow[] {
    return this.#list.all(query);
  }

  /** Moves at most so many overdue rows on, and returns how many; `now` was persisted before. */
  advance(now: Millis, limit: number): number {
    return this.#advance.run({ now, limit }).changes;
  }
}
